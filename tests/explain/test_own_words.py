"""What people say in their own words: the GPU is not used, is not seen, a library is not there."""

from __future__ import annotations

import re

import pytest

from ortgpu_fix.data_files import load_table
from ortgpu_fix.explain.failures import parse_failures
from ortgpu_fix.explain.matcher import explain_log
from ortgpu_fix.explain.patterns import any_quotes

TABLE = parse_failures(load_table("failures"))
UNUSED = [
    "My GPU is not used at all",
    "GPU isn't being used",
    "it does not use my GPU",
    "torch can't use the GPU",
    "It only uses CPU",
    "the program keeps falling back to CPU",
    "It runs, but always on the CPU",
    "显卡没有使用",
    "程序无法使用GPU",
    "明明有显卡，使用的是CPU",
    "GPUが使われません",
    "GPU를 사용하지 않습니다",
    "Программа не использует видеокарту",
    "Die GPU wird nicht genutzt",
    "Le programme n'utilise pas le GPU",
    "El programa no utiliza la GPU",
]
UNSEEN = [
    "GPU not detected",
    "My graphics card was not recognized",
    "The app does not detect my GPU",
    "cannot find any GPU",
    "软件识别不到显卡",
    "显卡未被识别",
    "GPUを認識していない",
    "GPU를 인식하지 못합니다",
    "Не видит видеокарту",
    "La aplicación no reconoce la GPU",
]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        *((text, "cpu-fallback") for text in UNUSED),
        *((text, "no-gpu-visible") for text in UNSEEN),
    ],
)
def test_people_say_that_the_gpu_is_not_used_or_not_seen(text: str, code: str) -> None:
    for log in (f"{text}\n", f"Hello!\n{text}, and I have an RTX 3060.\n"):
        assert [each.code for each in explain_log(log, TABLE)] == [code]


@pytest.mark.parametrize(
    "text",
    [
        "The GPU build is not used here",
        "GPUs-list not used",
        "MyGPU is not used",
        "If the GPU is not used, set the option",
        "Fixed GPU not used",
        "GPU EP is not used",
        "CUDA not found",  # the toolkit, maybe
        "I don't see GPU activity",
        "It only uses CPU builds",
        "It always runs on CPU by design",
        "- Added a switch: GPU not used",
        "Feature request: GPU not used at night",
        "How do I make it not use the GPU?",
        "I want it to not use my GPU",
        "It is better not to use the GPU",
        "We default to CPU",
        "On this model running on CPU takes 30 s, on CUDA 2 s",
        "This release no longer supports Pascal",
    ],
)
def test_what_people_say_of_builds_of_conditions_and_of_what_was_mended(text: str) -> None:
    assert explain_log(f"{text}. RTX 3060\n", TABLE) == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("I am looking for help. cudnn64_8.dll is missing. I have no idea", "cudnn-8-missing"),
        ("我在找原因。如果可以，请看看。找不到 cudnn64_9.dll", "cudnn-9-missing"),
        ("cublas64_12.dll could not be loaded", "cuda-12-libraries-missing"),
        ("onnxruntime_providers_cuda.dll 加载失败", "provider-not-loaded"),
        ("cudart64_110.dll -> not found", "cuda-11-libraries-missing"),
        (
            "It can't find these libraries: cudart64_12.dll, cublas64_12.dll",
            "cuda-12-libraries-missing",
        ),
        ("Invalid device ordinal", "device-id-invalid"),
        ("invalid device ordinal", "device-id-invalid"),
        (
            "x.so: symbol __nvJitLinkComplete_12_4, version yy not defined in file z.so",
            "libraries-mixed",
        ),
        ("version GLIBCXX_3.4.30' not found", "other-library-needs-newer-system"),
        ('version "GLIBCXX_3.4.30" not found', "other-library-needs-newer-system"),
        ("libnvvm.so: cannot open shared object file", "nvvm-missing"),
        ("libnccl.so.2: cannot open shared object file", "provider-not-loaded"),
        ("libnvJitLink.so.12: cannot open shared object file", "cuda-12-libraries-missing"),
        ("No matching distribution found for tensorflow-gpu", "no-wheel"),
        ("No matching distribution found for torch", "no-wheel"),
        ("CUDA out of memory 에러가 발생합니다", "out-of-memory"),
    ],
)
def test_other_quotes_other_letters_and_one_sentence_beside_another(text: str, code: str) -> None:
    assert [each.code for each in explain_log(f"{text}\n", TABLE)] == [code]


def test_a_sentence_ends_where_it_ends_however_far_the_text_goes_on() -> None:
    missing = "cudnn64_9.dll is missing"

    assert explain_log(f"If nobody has it, {missing}", TABLE) == ()
    for before in ("", "It ran. ", f"{'It ran well. ' * 60}"):
        assert explain_log(f"{before}{missing}, if nobody has it", TABLE) == ()
        assert codes_of(f"{before}{missing}. If you know more, tell me") == ["cudnn-9-missing"]
        assert codes_of(f"{before}If you know more, {missing} here. Thanks") == []


def test_a_library_is_missing_whenever_somebody_looks_a_gpu_unused_under_a_condition_is_not() -> (
    None
):
    """The table is made here, so that what makes its parsers is under the test."""
    table = parse_failures(load_table("failures"))
    library = explain_log("cudnn64_8.dll is missing if I start it\n", table)

    assert [each.code for each in library] == ["cudnn-8-missing"]
    assert explain_log("The GPU is not used if I start it\n", table) == ()


def test_people_do_not_write_what_is_too_long_to_hold() -> None:
    """A gigabyte takes seconds because little is looked for in it."""
    own, failed = f"{UNUSED[0]}\n", "cudnn64_9.dll is missing\n"

    assert codes_of(own) == ["cpu-fallback"]
    assert explain_log([own], TABLE) == ()
    assert [each.code for each in explain_log([own, failed], TABLE)] == ["cudnn-9-missing"]


def test_each_list_of_words_stands_on_its_own_side() -> None:
    """A table of its own: the words of `failures.toml` are many."""
    rows = {row["code"]: row for row in load_table("failures")["failure"]}
    codes = ("cudnn-9-missing", "provider-not-loaded", "no-gpu-visible", "cpu-fallback")
    table = parse_failures(
        {
            "failure": [{**rows[code], "elsewhere": ()} for code in codes],
            "library": load_table("failures")["library"],
            "absent_after": ["is gone"],
            "absent_before": ["lost is"],
            "unloaded": ["loads not"],
            "gpu-unused": {
                "gpu_before": ["sleeps on"],
                "gpu_after": ["nobody woke"],
                "cpu_after": ["all falls to"],
            },
            "gpu-unseen": {"card_before": ["is unseen"], "card_after": ["blind to"]},
        }
    )

    def said(text: str) -> list[str]:
        return [each.code for each in explain_log(f"{text}\n", table)]

    assert said("cudnn64_9.dll is gone") == said("lost is cudnn64_9.dll") == ["cudnn-9-missing"]
    assert said("is gone cudnn64_9.dll") == said("cudnn64_9.dll lost is") == []
    assert said("cudnn64_9.dll loads not") == ["cudnn-9-missing"]
    assert said("onnxruntime_providers_cuda.dll loads not") == ["provider-not-loaded"]
    assert said("loads not cudnn64_9.dll") == []
    for text in ("the GPU sleeps on", "nobody woke my GPU", "all falls to the CPU"):
        assert said(text) == said(text.replace("GPU", "CUDA")) == ["cpu-fallback"]
        assert said(text.replace(" ", "\n", 1)) == ["cpu-fallback"]
    for text in ("the GPU is unseen", "blind to my GPU"):
        assert said(text) == ["no-gpu-visible"]
        assert said(text.replace("GPU", "CUDA")) == []
    for text in ("sleeps on GPU", "GPU nobody woke", "CPU all falls to", "is unseen GPU"):
        assert said(text) == []
    assert said("cudnn64_9.dll\nis gone") == []
    # In a log that is too long to hold only the names of libraries are looked for.
    assert explain_log(["cudnn64_9.dll is gone\n"], table) != ()
    assert explain_log(["cudnn64_9.dll loads not\n", "the GPU sleeps on\n"], table) == ()


CUDNN = "libcudnn.so.9: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    "begin",
    [
        *("Possible duplicate of #1234 ", "> **Bot**: Duplicate of #1 "),
        *("- [ ] ", "> * [ ] ", "- fix `", "* Fixed ", "+ Fixes "),
        *("Solved! I had ", "**SOLVED** ", "solved: ", "Resolved: ", "已解决：", "**已解决** "),
        *("Fixes #12: ", "> Closes #3 ", "Resolved #4, ", "1. [ ] ", "10. Fixed "),
    ],
)
def test_a_line_of_another_failure_or_of_one_that_was_mended_says_nothing(begin: str) -> None:
    assert codes_of(f"{begin}{CUDNN}") == codes_of(f"Hello\n{begin}{CUDNN}") == []
    assert codes_of(f"{begin}\n{CUDNN}") == ["cudnn-9-missing"]


@pytest.mark.parametrize(
    "begin",
    [
        *("- [x] ", "Fix ", "- prefix ", "Unsolved: ", "Is it solved? ", "Resolved ", "Fixes 12 "),
        *("- fixed the driver, now I get ", "* fix needed: ", "- Fixed path but I get "),
        *(
            "Solved the first, it still says ",
            "- fix 了驱动，但 ",
            "已解决驱动，现在 ",
            "已解决，仍 ",
        ),
        "已解决，还是 ",
    ],
)
def test_a_line_that_does_not_say_so_tells_its_failure(begin: str) -> None:
    assert codes_of(f"{begin}{CUDNN}") == ["cudnn-9-missing"]


def test_items_of_a_list_are_not_one_line() -> None:
    """What stands in three was told as one failure of the first's provider."""
    first, second = "Failed to create CUDAExecutionProvider", "CUDA out of memory"

    for sign in "-*•":
        items = f"{sign} {first}\n{sign} use a smaller batch\n{sign} {second}: 3\n"
        memory = next(x for x in explain_log(items, TABLE) if x.code == "out-of-memory")
        assert [(each.line_number, each.line) for each in memory.evidence] == [
            (3, f"{sign} {second}: 3")
        ]
    assert codes_of("- an item, and a GPU\nis not used") == ["cpu-fallback"]
    assert codes_of("+ onnxruntime==1.20.1\n+ onnxruntime-gpu==1.20.1") == ["two-builds-listed"]


def test_amd_says_the_same_of_its_own() -> None:
    assert codes_of("RuntimeError: HIP error: invalid device function") == []
    assert codes_of("RuntimeError: CUDA error: invalid device function") == ["no-kernel-image"]


def codes_of(text: str) -> list[str]:
    return [each.code for each in explain_log(f"{text}\n", TABLE)]


@pytest.mark.parametrize(
    ("source", "texts", "not_texts"),
    [
        (
            "module 'x' has",
            ["module 'x' has", 'module "x" has', "module x has"],
            ["module 'y' has"],
        ),
        ("""['"]CPU['"] only""", ["'CPU' only"], ["CPU only"]),  # a class stays as it is
        ("(?<!the 'x' )is not there", ["it is not there"], ["the 'x' is not there"]),
        ("don't see it", ["don't see it"], ["dont see it"]),  # a letter, no quotation mark
        ("a 'b'? there is", ["a b there is", "a 'b' there is"], ['a b" there is']),
    ],
)
def test_quotation_marks_are_any_or_none(
    source: str, texts: list[str], not_texts: list[str]
) -> None:
    found = re.compile(any_quotes(source))

    assert all(found.search(text) for text in texts)
    assert not any(found.search(text) for text in not_texts)

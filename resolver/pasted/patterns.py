"""How the outputs of common programs, and people, name what a machine has.

Every pattern is for one line of at most `LONGEST` characters, and none has a repetition in another.
"""

import re

LONGEST = 500
"""What is looked at of a line."""

HINT = re.compile(
    r"NVIDIA|nvidia|[Dd]river|[Pp]ython|GPU|Torch|torch|onnx|ONNX|RTX|GTX|rtx|gtx|[A-Za-z_]==\d"
    r"|^Name: |^Version: |Windows|windows|[Ww]in1[01]|[Ll]inux|Ubuntu|Debian|CentOS|Fedora|Rocky"
    r"|Alpine|Manjaro|nixos|NixOS|n[Rr][Aa][Ii][Dd]|GB10|-win1|WSL|\bwsl|[Aa]rchitecture"
    r"|[Ll]ibc|OS:|CUDA:\d|\d0 ?[Tt]i\b|MSC v\.|FROM |docker|EC2|ctranslate|numpy|faster-|[\\/]\w"
    r"|Package |Tesla|Quadro|GeForce|Jetson|MX ?\d{3}|GT ?10"
    r"|(?:[Mm]y|[Aa]n?|[Tt]he|[Oo]ur) (?:[ABHLV]\d{2}|[2-5]0[5-9]0\b)"
    r"|Mint|Pop!_OS|SUSE|Kali|Gentoo|Endeavour|AlmaLinux|Arch\b|conda|^# Name|pip3? (?:freeze|list)"
    r"|externally-managed|requirements|cannot open shared|uv venv|NVRM|OnnxRuntime"
    r"|驱动|驅動|драйвер|ドライバ|드라이버"
)
"""What a line has that tells something: most lines of a log have nothing."""
EXAMPLE = re.compile(r"\(e\.g\.[^)]*\)")
"""In the forms that projects have their users fill in."""
UNCHECKED = re.compile(r"^\W{0,9}[-*+] \[ \]")
"""A box of a form that nobody checked."""
TAG = re.compile(r"(?i)</?(?:t[dhr]|table|li|[ou]l|p|br|b|code|strong|summary)\b[^<>]{0,80}>")
"""Of HTML; those of other languages, as Maven's, stay."""
_ARROW = r" {0,3}(?:-{1,3}>|={2,3}>|→) {0,3}"
ARROW = re.compile(_ARROW)
CHANGED = re.compile(
    rf"(?i)(?<![\w.])(?:v?\d[\w.+]*\.\w+{_ARROW}(?=v?\d+\.\d)"
    r"|from (?:[a-z]+ ){0,2}v?\d[\w.+]*\.\w+ to (?=(?:[a-z]+ ){0,2}v?\d+\.\d))"
)
"""The release before, where a person tells of a change: `550.120 -> 580.88`."""
QUOTED = re.compile(r"^\s*> ")
"""A line of a mail or of a comment that somebody answers."""
QUOTE = re.compile(r"^[>\s|*+`-]*")
"""What Markdown, and uv, put before a line."""

SMI = re.compile(
    r"NVIDIA-SMI\s{1,40}(?P<smi>\d{3}\.[\d.]{2,6})"
    r"(?:\s{1,40}(?:Driver|KMD) Version:\s{0,9}(?P<driver>\d{3}\.[\d.]{2,6}))?"
    r"\s{1,40}CUDA (?:UMD )?Version:\s{0,9}(?P<cuda>\d+\.\d+)?"
)
"""The head of nvidia-smi's table."""
OF_WINDOWS = re.compile(r"\d{3}\.\d\d$")
"""A driver of Windows: `566.36`."""
SMI_GPU = re.compile(
    r"^\W{0,9}\|\s{1,9}\d{1,3}\s{1,9}(?P<gpu>\S.{0,60}?)\s{1,40}"
    r"(?:On|Off|WDDM|TCC|MCDM|N/A)\s{1,9}\|\s{1,9}[0-9A-Fa-f]{4,8}:"
)
SMI_ROW = re.compile(
    r"^(?P<gpu>(?:NVIDIA|Tesla|GeForce|Quadro) [^,|]+), ?(?P<driver>\d{3}\.[\d.]+)"
)
"""`nvidia-smi --query-gpu=name,driver_version --format=csv`."""
LISTED_GPU = re.compile(r"\bGPU (?P<index>\d+): (?P<gpu>[^(:]+)")
"""`nvidia-smi -L` and torch.utils.collect_env."""
TORCH_GPU = re.compile(r"\bcuda:(?P<index>\d+) (?P<gpu>NVIDIA [^:]+?) :")
"""ComfyUI: `Device: cuda:0 NVIDIA GeForce RTX 3070 Laptop GPU : cudaMallocAsync`."""
JULIA_GPU = re.compile(r"^\s*(?P<index>\d+): (?P<gpu>NVIDIA [^(]+) \(sm_\d")
"""`CUDA.versioninfo()`."""
SIZED_GPU = re.compile(r"\bCUDA:(?P<index>\d+) \((?P<gpu>[^(),]+), \d+MiB\)")
"""Ultralytics: `torch-2.1.0 CUDA:0 (Orin, 30697MiB)`."""
NAMED_GPU = re.compile(
    r"(?i)\b(?:RTX|GTX)[ -]?(?:PRO ?)?A?\d{3,4}M?(?:[ -]?(?:Ti|SUPER|Ada)\b)*(?![ -]?series|\d|x)"
    r"|\b(?:GeForce (?:GT ?)?\d{3,4}(?:MX?)?|(?:GeForce )?MX ?\d{3}|GT ?10[13]0)\b"
    r"|\bQuadro (?:RTX |[KMPT])?\d{3,4}M?\b"
    r"|\b(?:NVIDIA|Tesla|GPU|g4dn|g5|g6|p4d|p5)\b[^\n,;]{0,20}?\b"
    r"(?:A100|A10G?|A30|A40|A16|H100|H200|B200|L4|L40S?|T4|V100|P100|P40|P4|K80|TITAN \w+"
    r"|M40|M60|A[24]000|A[456]500|A[56]000|T1000|P620)\b|\bGB10\b"
    r"|\b(?:my|our|an?|the) (?:A100|H100|H200|B200|V100|L40S)\b"
    r"|\bGPU\W{1,6}[1-5]0[5-9]0\b(?: ?ti\b)?|\b[1-5]0[5-9]0 ?ti\b"
    r"|\b(?:my|our|an?|the) [2-5]0[5-9]0\b(?: ?ti\b)?"
    r"(?! ?(?:[x×]|ms|images|frames|steps|tokens|files)\b)"
    r"|\bJetson (?:AGX |Xavier |Orin )?(?:Orin|Xavier|Nano|NX|Thor)\b"
)
GPU_WORDS = re.compile(
    r"(?i)\b((?:Quadro|RTX|GTX|TITAN|Jetson)\b.*|(?:RTX|GTX)A?\d.*|GeForce .*|(?:MX|GT) ?\d{3,4}"
    r"|[AHLTVPKBM]\d{1,4}[GS]?|GB10|\d{4}(?: ?ti)?)$"
)
"""The product in what `NAMED_GPU` finds."""

_DRIVER_WORD = "(?:driver|驱动|驅動|драйвер|ドライバ|드라이버|treiber)"
_RELEASE = r"(\d{3}\.\d{2,3}(?:\.\d{1,2})?)(?![\d.]*\d)"
DRIVER_LINE = re.compile(rf"(?i)^Nvidia driver version: {_RELEASE}")
DRIVER = re.compile(
    rf"(?i){_DRIVER_WORD}[^\d\n]{{0,40}}?{_RELEASE}"
    rf"|NVRM version:[^\n]{{0,60}}Kernel Module(?: for \w+)?\s{{1,4}}{_RELEASE}"
    r"|\bNVIDIA (\d{3}\.\d{2,3}\.\d{2})(?![\d.]*\d)|\b(\d{3}\.\d{2})-(?:desktop|notebook)-win\d"
)
BRANCH = re.compile(
    rf"(?i)(?<!runs on ){_DRIVER_WORD}s?(?: (?:version|release))?(?: is|:| ?={{1,2}})?[ -]{{0,2}}"
    r"\bR?(3[4-9][05]|[456][1-9][05])(?:\.x{1,3})?(?![\w%+]|[.-]\w)(?! ?(?:[kmg]i?b|ms|fps)\b)"
)
"""A driver of which a person tells the branch alone: `driver 580`, `drivers R570`, `565.x`."""
SMI_CUDA = re.compile(
    r"(?i)nvidia-smi[^\n\d]{0,40}?\bCUDA(?: UMD)?(?: version)?\W{0,6}(\d{2}\.\d)(?![.\d])"
    r"|\bCUDA(?: UMD)?(?: version)?[^\n\d]{0,25}nvidia-smi[^\n\d]{0,12}?(\d{2}\.\d)(?![.\d])"
    r"|\bCUDA(?: UMD)?(?: version)?\W{1,4}(\d{2}\.\d) \([^)\n]{0,20}nvidia-smi"
    r"|\bdriver[^\n]{0,30}\d{3}\.[\d.]{2,6} \((?:max |reports )?`?CUDA(?: UMD)?(?: version)?:? ?"
    r"(\d{2}\.\d)(?![.\d])"
    r"|\bCUDA(?: version)?\W{1,4}(\d{2}\.\d) \(driver version"
    r"|\bCUDA version \(driver[^)\n]{0,9}\)\W{1,6}(\d{2}\.\d)(?![.\d])"
    r"|\bdriver version\W{1,3}\d{3}\.[\d.]{2,6}\W{1,3}CUDA version\W{1,3}(\d{2}\.\d)(?![.\d])"
    r"|^CUDA driver (\d{2}\.\d)$"
)
"""What a person says that nvidia-smi shows, without the driver's release or right after it."""
FOUND_CUDA = re.compile(r"driver on your system is too old \(found version (\d{2})0(\d)0\)")
"""torch's: 12040 is CUDA 12.4."""
RELEASE_FIRST = re.compile(
    r"(?i)(?<![\d.])(\d{3}\.\d{2,3}(?:\.\d{2})?)\W{1,3}(?:as my |nvidia |game ready )?driver"
)
WDDM = re.compile(r"(?i)driver.{0,60}?\b\d{2}\.\d\.1(\d)\.(\d{2})(\d{2})\b")
"""Windows' own number: its last five digits are NVIDIA's, `31.0.15.2686` is 526.86.

Source: https://learn.microsoft.com/windows-hardware/drivers/display/wddm-driver-version-numbers
"""

_PYTHON = r"(3\.\d{1,2}(?:\.\d{1,2})?)(?!\.?\d)"
PYTHON_BANNER = re.compile(
    r"\b(3\.\d{1,2}\.\d{1,2})[+\w]* (?:\| packaged|\((?:main|default|tags/|heads/|v3|conda))"
)
PYTHON = re.compile(
    r"(?i)\bC?Python\b(?: version)?(?: \([^)]{0,20}\))?"
    rf"[\s:：*|_`=(]{{1,12}}(?:portable_ |version )?v?{_PYTHON}"
)
PYTHON_LINE = re.compile(r"(?i)^(?:Python[ *]+version|Using C?Python|Python 3\.\d+\.\d+(?: \(|$))")
PYTHON_HEADING = re.compile(r"(?i)^#* ?Python version\b[^\d:=]*$")
"""Of a form that was filled in; the answer stands below it."""
PYTHON_ANSWER = re.compile(rf"^{_PYTHON}$")
PYTHON_PATH = re.compile(r"(?i)[/\\]python(3)\.?(\d{1,2})[/\\]")

ADVICE_BEFORE = re.compile(
    r"(?i)\b(?:requires?|needs?|at least|minimum|upgrad(?:e|ing) to|(?<!had to )downgrad(?:e|ing)"
    r"|update|try|(?<!\bI )(?<!\bWe )use|should|please|recommend\w*|supports?|from)\b|[<>]=?"
)
ADVICE_AFTER = re.compile(
    r"(?i)^(?:\+|\W*(?:through\b|is the (?:last|first|only|newest)\b"
    r"|(?:is|are) required|or (?:newer|later|above|higher|more)|(?:and|or) 3\.\d))"
)
"""What stands about a version that somebody should have."""

PACKAGE = re.compile(
    r"^(?:(\[pip3?\]|\[conda\]) *)?([A-Za-z][\w.-]*)==(\d[\w.+!-]*)(?:$| at | *;| *#)"
)
"""pip freeze, uv, print_debug_info and collect_env."""
LISTING = re.compile(r"\b(?:pip3?|conda|mamba) (?:freeze|list)\b")
"""A command that lists what is installed."""
ASKED_FOR = re.compile(r"^[^=]*\brequirements[\w.-]*\.(?:txt|in)\b")
"""What names a file of what is to be installed, and is no pin itself."""
CELLS = re.compile(r"[*`]{0,2} ?\|[ *`]{0,3}")
"""What stands between the cells of a table in Markdown."""
CONDA_NAMES = {"pytorch": "torch"}
"""Packages that conda calls otherwise."""
TABLE = re.compile(r"^Package +Version\b|^# Name +Version +Build\b")
TABLE_ROW = re.compile(r"^(?!Python |NVIDIA-SMI )_?([A-Za-z][\w.-]*) +(\d[\w.+!-]*)(?: .*)?$")
"""Of `pip list` and `conda list`; what other commands print below it ends the table."""
KNOWN_ROW = re.compile(
    r"^((?:onnxruntime|nvidia-[a-z-]+-cu\d\d|faster-whisper|ctranslate2|torch(?:vision|audio)?"
    r"|numpy|onnx|insightface|rembg|fastembed)[\w-]*) +(\d+(?:\.[\w+]+)+)$"
)
SHOWN_NAME = re.compile(r"^Name: ([A-Za-z][\w.-]*)$")
SHOWN_VERSION = re.compile(r"^Version: (\d[\w.+!-]*)$")
COMMAND = re.compile(r"pip3? install|uv (?:add|pip)|No matching|Could not find|requirement")
NAMED_PACKAGE = re.compile(
    r"\b(onnxruntime[-_]gpu|torch|(?:faster-whisper|ctranslate2|numpy)(?===))"
    r"(?:`|'|\")?(?: version)?[ :=v(]{1,4}(\d+\.\d+(?:\.\d[\w+]*)?)"
)
TORCH_LINE = re.compile(
    r"(?i)(?:^|- |\w:)(?:pytorch|torch[ *]*version)[ *]*(?:version)?"
    r"(?: \((?:GPU\?|if applicable)\))?[ *:：`]+(\d+\.\d[\w.+]*)"
)
ORT_LINE = re.compile(
    r"(?i)(?:^|- |\w:)ONNX ?Runtime(?: (GPU|CPU))? (?:package installed with )?version[ *:]+"
    r"(\d+\.\d+(?:\.\d+)?)\b"
)
ORT_HEADING = re.compile(r"(?i)ONNX Runtime Version or Commit ID$")
BARE_VERSION = re.compile(r"^v?(1\.\d{1,2}\.\d)$")
GPU_BUILD_NAMED = re.compile(r"onnxruntime[-_]gpu")
OTHER_LANGUAGE = re.compile(r"Microsoft\.ML\.OnnxRuntime|com\.microsoft\.onnxruntime")
"""onnxruntime from NuGet or Maven, whose releases are not those of Python's packages."""

PLATFORM = re.compile(
    r"(?i)\bplatform: *(Linux|Windows)-|\bOperating System: (Linux|Windows)\b|\b(Linux)-\d\.\d+"
)
GLIBC = re.compile(r"\bglibc-?(2\.\d{1,2})\b")
_NAMES = (
    "Ubuntu|Debian|CentOS|Fedora|Rocky|AlmaLinux|Linux Mint|Pop!_OS|openSUSE Leap|RHEL|Zorin OS"
)
DISTRIBUTION = re.compile(
    rf"(?<!\w)({_NAMES})(?: Linux)?[ :]{{1,3}}(\d\d?(?:\.\d\d?)?)\b(?!(?:\.\d+)+-)"
)
IMAGE = re.compile(
    r"(?:^FROM [\w./-]{1,80}|\bnvidia/cuda|\bpytorch/pytorch|\bnvcr\.io/nvidia/[\w-]{1,30})"
    r":([\w.-]{1,80})"
)
IMAGE_SYSTEM = re.compile(r"(ubuntu)(\d\d\.\d\d)")
ARM = re.compile(r"\baarch64\b|\barm64\b|\bJetson\b")
SYSTEMS = (
    (2, "linux", re.compile(r"Persistence-M|\] on linux$")),
    (2, "windows", re.compile(r"TCC/WDDM|Driver-Model|\[MSC v\.|\bOS:\W* nt\b|on win32$")),
    (2, "wsl", re.compile(r"microsoft-standard")),
    (1, "wsl", re.compile(r"\bWSL ?2?\b|(?<![\w/])wsl2?(?![\w/])")),
    (
        1,
        "windows",
        re.compile(
            r"(?<![A-Za-z])W(?:i)?ndows (?:1[01]|7|8|Server)|^Windows$|\b[Ww]in(?:dows)? ?1[01]\b"
            r"|\b(?:OS|[Pp]latform|[Ss]ystem)\b[*:=| ]{1,5}Windows\b"
        ),
    ),
    (
        1,
        "linux",
        re.compile(
            r"\b(?:Ubuntu|Debian|CentOS|Fedora|Rocky|Manjaro|Arch Linux|NixOS|nixos|RHEL"
            r"|AlmaLinux|Linux Mint|openSUSE|Kali|Gentoo|EndeavourOS|Zorin OS)(?![A-Za-z])|Pop!_OS"
            r"|^Linux$|\b(?:OS|[Pp]latform|[Ss]ystem)\b[*:=| ]{1,5}(?:\w{1,20} )?Linux\b"
            r"|\b(?i:unraid)\b"
        ),
    ),
    (0, "windows", re.compile(r"\b[A-Za-z]:\\\w|\.dll\b|\\site-packages")),
    (0, "linux", re.compile(r"(?:^|[\s\"'`(=:])/(?:usr|home|opt|root|mnt|app)/|\.so(?:\.\d|\b)")),
)
"""How sure each is: 2 what a program says of its system, 1 what people write, 0 paths."""
ENVIRONMENTS = (
    (
        "conda",
        re.compile(
            r"^# packages in environment at |(?:^\s*|[$>#`] ?)conda activate \w"
            r"|(?i:(?:conda|miniforge|mambaforge)\d?[/\\](?:envs[/\\][\w.-]{1,40}[/\\])?"
            r"(?:bin[/\\]python|python\.exe|lib[/\\](?:python3[.\d]*[/\\])?site-packages))"
        ),
    ),
    (
        "venv",
        re.compile(r"(?i)(?<!path/to/)venv[/\\](?:scripts|bin|lib)|(?:-m|uv) venv\b(?! path/to)"),
    ),
    ("system", re.compile(r"^error: externally-managed-environment")),
)
"""What shows the kind of an environment; `path/to/venv` is an example of pip's."""

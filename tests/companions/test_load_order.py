"""The order in which libraries are loaded: none links one that comes after it."""

from __future__ import annotations

from ortgpu_fix.companions.library_list import Entry, load_order

LINUX = (
    *("libcudart.so.12", "libnvJitLink.so.12", "libnvrtc-builtins.so.12.8", "libnvrtc.so.12"),
    *("libcublasLt.so.12", "libcublas.so.12", "libcurand.so.10", "libcufft.so.11"),
    *("libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_ops_infer.so.8"),
    *("libcudnn_ops_train.so.8", "libcudnn_cnn.so.9", "libcudnn_cnn_infer.so.8"),
    *("libcudnn_cnn_train.so.8", "libcudnn_adv_infer.so.8", "libcudnn_adv.so.9"),
    *("libacme.so.1", "libother.so.1", "libcudnn.so.9"),
)
WINDOWS = (
    *("cudart64_12.dll", "nvJitLink_120_0.dll", "nvrtc-builtins64_128.dll", "nvrtc64_120_0.dll"),
    *("cublasLt64_12.dll", "cublas64_12.dll", "curand64_10.dll", "cufft64_11.dll"),
    *("cudnn_graph64_9.dll", "cudnn_ops64_9.dll", "cudnn_ops_infer64_8.dll"),
    *("cudnn_ops_train64_8.dll", "cudnn_cnn64_9.dll", "cudnn_cnn_infer64_8.dll"),
    *("cudnn_cnn_train64_8.dll", "cudnn_adv_infer64_8.dll", "cudnn_adv64_9.dll"),
    *("acme64_1.dll", "other64_1.dll", "cudnn64_9.dll"),
)


def test_every_library_comes_after_those_that_it_links() -> None:
    for names in (LINUX, WINDOWS):
        entries = [Entry("always", "nvidia-x", f"nvidia/lib/{name}") for name in names]
        for mixed in (reversed(entries), sorted(entries)):
            assert [entry.path for entry in load_order(mixed)] == [row.path for row in entries]


def test_a_variant_of_a_library_is_another_one() -> None:
    """It has the same name but for a word, and nothing links it."""
    rows = ("lib/libnvrtc.alt.so.12", "lib/libcufft.so.11", "lib/libcudnn.so.9")
    entries = [Entry("always", "x", row) for row in rows]

    assert [entry.path for entry in load_order(entries)] == [rows[1], rows[0], rows[2]]

"""Arrays of zarr and dask as sources: read in bands, never whole."""

import numpy as np
import pytest
import rfexec
from conftest import TOP, random_image

dask_array = pytest.importorskip("dask.array")
zarr = pytest.importorskip("zarr")


@pytest.fixture(scope="module")
def net():
    return rfexec.open(TOP / "data" / "defect_net.onnx", size=(600, 500))


@pytest.mark.parametrize("memory", [None, "20MiB"])
def test_zarr_and_dask(net, tmp_path, memory):
    image = random_image(600, 500)[0]
    want = net.run(image)["defects"].tobytes()
    place = str(tmp_path / "image.zarr")
    stored = zarr.open(place, mode="w", shape=image.shape, chunks=(3, 128, 100), dtype="f4")
    stored[...] = image
    whole = []
    lazy = dask_array.from_array(image, chunks=(3, 100, 250)).map_blocks(
        lambda block: whole.append(block.size == image.size) or block, dtype=np.float32
    )
    assert net.run(stored, memory)["defects"].tobytes() == want
    assert net.run(lazy, memory)["defects"].tobytes() == want
    assert whole and not any(whole)


def test_dask_of_other_types(net):
    grey = dask_array.from_array((random_image(600, 500)[0] * 10).astype(np.uint8))
    with pytest.raises(rfexec.UsageError, match="int16"):
        net.run(grey.astype("int16"))
    expected = net.run(grey.compute())["defects"]  # as the samples of a picture
    assert net.run(grey)["defects"].tobytes() == expected.tobytes()
    assert net.run(grey.astype("float32") / np.float32(255))["defects"].shape == (1, 3, 75, 63)

"""Runs of one array, or of the images of a batch one after the other."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional, Sequence

import numpy as np

from ._call import Call, progress_of_image
from ._errors import UsageError
from ._files import returned
from ._inputs import Input, as_array, images_in, layout_of
from ._outputs import Outputs
from ._samples import is_samples
from ._steps import observe


def run_images(
    image: Any,
    wanted: tuple[Any, ...],
    known: Sequence[Any],
    layout: Optional[str],
    progress: Any,
    observer: Any,
    names: Optional[Iterable[str]],
    out: Any,
    run_one: Callable[[Call, Input, Outputs, int], None],
    target: Any = None,
) -> dict[str, np.ndarray]:
    """Runs an array or a batch; returns the outputs by name.

    Args:
        wanted: the input's shape.
        known: the TensorInfo of all outputs.
        run_one: runs image n of the batch.
        target: the files that outputs go to; None: no files.
        layout, progress, observer, names, out: as in Network.run().
    """
    layout = layout_of(image, wanted, layout)
    images = images_in(image, wanted, layout)
    if images > 1 and target is not None:
        raise UsageError("output= writes the output of one image: the outputs of a batch are returned")
    results: Optional[Outputs] = None
    arrays: dict[str, np.ndarray] = {}
    for n in range(images):
        call = Call(progress=progress_of_image(progress, n, images))
        observe(call, observer, known)
        with returned(call, target, known, names, out) as (kept, files):
            source = Input(image, wanted, layout, call.set_read, n if images > 1 else None)
            if results is None:
                given = None if is_samples(image) else as_array(image)
                results = Outputs(known, kept, out, given, images)
            run_one(call, source, results, n)
            if n == images - 1:
                arrays = results.typed(files)
    return arrays

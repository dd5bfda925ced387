"""Boxes of Network.boxes for other programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._errors import UsageError


def _checked(boxes: Any) -> Any:
    names = getattr(getattr(boxes, "dtype", None), "names", None) or ()
    if not {"box", "score", "label"} <= set(names) or boxes.ndim != 1:
        raise UsageError("boxes: an array of Network.boxes, with the fields box, score and label")
    return boxes


def _masks(boxes: Any) -> Any:
    return boxes["mask"] if "mask" in boxes.dtype.names else None


def to_supervision(boxes: np.ndarray, max_mask_bytes: int = 1 << 28) -> dict[str, np.ndarray]:
    """Returns the arguments of supervision.Detections for boxes.

        detections = supervision.Detections(**rfexec.to_supervision(net.boxes("photo.png")))

    The package supervision itself is not needed.

    Args:
        boxes: what Network.boxes returns, of n boxes without an angle.
        max_mask_bytes: if the masks take more than so many bytes as an array, n times the pixels of the
            image, there is no array of masks. Mask.crop() has those of a large image.

    Returns:
        A dict of new arrays: xyxy, float32 (n, 4): left, top, right, bottom in pixels; confidence, float32
        (n,); class_id, int64 (n,). Of boxes with masks also mask, bool (n, rows, columns), if n is not 0.

    Raises:
        UsageError: boxes is another kind of array.
    """
    found = _checked(boxes)
    arrays: dict[str, np.ndarray] = {
        "xyxy": np.array(found["box"], np.float32).reshape(-1, 4),
        "confidence": np.array(found["score"], np.float32),
        "class_id": np.array(found["label"], np.int64),
    }
    masks = _masks(found)
    if masks is not None and len(masks) > 0:
        rows, columns = masks[0].size
        if len(masks) * rows * columns <= max_mask_bytes:
            arrays["mask"] = np.stack([mask.to_array() for mask in masks])
    return arrays


def to_coco(boxes: np.ndarray, image_id: int = 0) -> list[dict[str, Any]]:
    """Returns boxes as COCO's results, for json.dump or pycocotools' COCO.loadRes.

    Args:
        boxes: what Network.boxes returns, boxes without an angle.
        image_id: the number of the image in the annotations.

    Returns:
        A list of dicts with image_id, category_id (the label), bbox (left, top, width, height) and score, and
        of boxes with masks segmentation (compressed run lengths), in the order of the boxes. These are the
        numbers of the program's files .coco.json, without keypoints.

    Raises:
        UsageError: boxes is another kind of array.
    """
    found = _checked(boxes)
    corners = np.asarray(found["box"], np.float64)
    sides = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1)
    results: list[dict[str, Any]] = [
        {"image_id": int(image_id), "category_id": int(label), "bbox": side, "score": float(score)}
        for side, label, score in zip(sides.tolist(), found["label"], found["score"])
    ]
    masks = _masks(found)
    for result, mask in zip(results, masks if masks is not None else ()):
        result["segmentation"] = mask.to_rle()
    return results

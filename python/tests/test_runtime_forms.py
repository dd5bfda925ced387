"""Programs written for ONNX Runtime give the same with the import changed alone."""

import pytest
import rfexec
import runtime_forms

onnxruntime = pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("form", runtime_forms.FORMS, ids=lambda form: form.__name__)
def test_form(form):
    theirs = runtime_forms.outcome(form, onnxruntime)
    ours = runtime_forms.outcome(form, rfexec)
    assert runtime_forms.same(theirs, ours), (theirs, ours)

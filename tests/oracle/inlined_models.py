"""Small networks with branches and functions in the place of nodes, and with shapes that exporters cut
into parts of which some are empty, for check_models.py.

    inlined_models.py FOLDER
"""

import pathlib
import sys

import onnx
from onnx import TensorProto, helper

from norm_models import CHANNELS, number, op, save, weight

DOMAIN = "package"


def keep(folder, name, nodes, constants, functions=()):
    save(folder, name, nodes, constants, prefix="inlined")
    path = folder / f"inlined_{name}.onnx"
    model = onnx.load(path)
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    onnx.save(model, path)


def branch(name, nodes, outputs, constants=()):
    return helper.make_graph(nodes, name, [], [
        helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs], constants)


def either(condition, output, then, other):
    return helper.make_node("If", [condition], [output], then_branch=then, else_branch=other)


def function(name, inputs, outputs, nodes, attributes=(), defaults=()):
    return helper.make_function(
        DOMAIN, name, inputs, outputs, nodes,
        [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)], list(attributes),
        list(defaults))


def by_ref(node, **attributes):
    """The node with attributes that are those of its function."""
    for name, (ref, kind) in attributes.items():
        a = node.attribute.add()
        a.name, a.ref_attr_name, a.type = name, ref, kind
    return node


def call(name, inputs, output, **attributes):
    return helper.make_node(name, inputs.split(), [output], domain=DOMAIN, **attributes)


def branches(folder):
    """Conditions that are constants or follow from shapes; branches see what is around them."""
    relu = branch("relu", [op("Relu", "c", "b")], ["b"])
    scaled = branch("scaled", [op("Mul", "c half", "b")], ["b"], [number("half", 0.5)])
    rank = [op("Shape", "c", "s"), op("Size", "s", "rank"), op("Equal", "rank four", "is_map")]
    four = number("four", 4)
    keep(folder, "if_constant", [either("no", "n", relu, scaled)], [
        helper.make_tensor("no", TensorProto.BOOL, [], [False])])
    keep(folder, "if_shape", [*rank, either("is_map", "n", relu, scaled)], [four])
    inner = branch("inner", [op("Tanh", "c", "t"), op("Add", "t outside", "i")], ["i"])
    nested = branch("nested", [op("Sigmoid", "c", "outside"),
                               either("is_map", "i2", inner, relu), op("Relu", "i2", "b")], ["b"])
    keep(folder, "if_nested", [*rank, either("is_map", "n", nested, scaled)], [four])
    # As TorchScript writes x.squeeze(1): the other branch would not fit.
    squeezed = branch("squeezed", [op("Squeeze", "g one", "q")], ["q"])
    as_is = branch("as_is", [op("Identity", "g", "q")], ["q"])
    keep(folder, "if_squeeze", [
        op("ReduceMean", "c", "g", axes=[1]), op("Shape", "g", "sg"), op("Gather", "sg one", "d"),
        op("Equal", "d one", "single"), either("single", "q", squeezed, as_is),
        op("Unsqueeze", "q one", "u"), op("Add", "c u", "n")], [number("one", [1])])
    # Names of one branch may be those of another one.
    keep(folder, "if_twice", [*rank, either("is_map", "m", relu, scaled),
                              either("is_map", "n", branch("twice", [
                                  op("Mul", "m m", "b")], ["b"]), scaled)], [four])


def functions(folder):
    """Functions within functions, with attributes that calls give or leave out."""
    activate = function("Activate", ["x"], ["y"], [
        by_ref(op("LeakyRelu", "x", "y"), alpha=("slope", onnx.AttributeProto.FLOAT))], [],
        [helper.make_attribute("slope", 0.25)])
    block = function("Block", ["x", "w", "b"], ["y"], [
        by_ref(op("Conv", "x w b", "t", pads=[1] * 4),
               group=("group", onnx.AttributeProto.INT)),
        by_ref(call("Activate", "t", "a"), slope=("leak", onnx.AttributeProto.FLOAT)),
        op("Add", "a x", "y")], ["group", "leak"])
    filters = [weight("w", CHANNELS, CHANNELS // 2, 3, 3), weight("b", CHANNELS)]
    keep(folder, "function", [
        call("Block", "c w b", "t", group=2, leak=0.1),
        call("Block", "t w2 b", "n", group=1)],
        [*filters, weight("w2", CHANNELS, CHANNELS, 3, 3)], [block, activate])
    keep(folder, "function_without_input", [
        helper.make_node("Block", ["c", "w"], ["n"], domain=DOMAIN, group=2)],
        filters[:1], [block, activate])
    chosen = function("Chosen", ["x"], ["y"], [
        op("Shape", "x", "s"), op("Size", "s", "r"), op("Constant", "", "four", value_int=4),
        op("Equal", "r four", "c"), either(
            "c", "y", branch("t", [by_ref(op("Elu", "x", "b"),
                                          alpha=("a", onnx.AttributeProto.FLOAT))], ["b"]),
            branch("e", [op("Identity", "x", "b")], ["b"]))], ["a"])
    keep(folder, "function_with_branch", [call("Chosen", "c", "n", a=0.5)], [], [chosen])
    norm = function("WeightNorm", ["v"], ["w"], [
        op("ReduceL2", "v", "l", axes=[1, 2, 3]), op("Div", "v l", "w")])
    keep(folder, "function_of_constants", [
        call("WeightNorm", "w2", "f"), op("Conv", "c f", "n", pads=[1] * 4)],
        [weight("w2", CHANNELS, CHANNELS, 3, 3)], [norm])


def empty(folder):
    """Parts of shapes that are empty: x.shape[4:], and the product of such."""
    ints = [number(f"i{i}", [i]) for i in (0, 2, 4)] + [number("far", [2**63 - 1])]
    parts = [op("Shape", "c", "s"), op("Slice", "s i4 far i0", "rest"),
             op("Slice", "s i0 i2 i0", "start"), op("Slice", "s i2 i4 i0", "size")]
    keep(folder, "empty_slice", [*parts, op("Concat", "start size rest", "all", axis=0),
                                 op("Reshape", "c all", "n")], ints)
    keep(folder, "empty_product", [
        *parts, op("ReduceProd", "rest", "one", keepdims=1), op("ReduceSum", "rest", "zero"),
        op("Concat", "start size one", "all", axis=0), op("Reshape", "c all", "r"),
        op("Squeeze", "r four", "q"), op("Cast", "zero", "z", to=TensorProto.FLOAT),
        op("Add", "q z", "n")], [*ints, number("four", [4])])
    keep(folder, "empty_cast", [
        *parts, op("Cast", "rest", "f", to=TensorProto.FLOAT), op("Mul", "f half", "h"),
        op("Floor", "h", "g"), op("Cast", "g", "back", to=TensorProto.INT64),
        op("Identity", "back", "none"),
        op("Concat", "start none size", "all", axis=0), op("Expand", "c all", "n")],
        [*ints, number("half", 0.5)])


def main():
    folder = pathlib.Path(sys.argv[1])
    branches(folder)
    functions(folder)
    empty(folder)


if __name__ == "__main__":
    main()

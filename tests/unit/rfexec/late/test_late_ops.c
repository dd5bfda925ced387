/* Late operators on small tensors. Expected values were worked out by hand from ONNX's definitions;
 * those of NonMaxSuppression and TopK are ONNX Runtime's for the same tensors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/late/late_ops.h"
#include "rfexec/late/late_run.h"

/* A tensor is a letter (f: float32, l: int64, i: int32, b: bool), its dims and its elements, as in
 * "f[2,2] 1 2 3 4". Operands and results are separated by '|'; "-" is an absent one. An attribute
 * is "name=1" or, if it is a list, "name=1,2". */
struct example {
    const char *op, *attrs, *in, *out; /* out NULL: refused */
    const char *words;                 /* of the refusal */
};

static const struct example examples[] = {
    {"Identity", "", "f[2] 1 nan", "f[2] 1 nan", NULL},
    {"Shape", "", "f[2,0,3]", "l[3] 2 0 3", NULL},
    {"Shape", "start=1", "f[2,1,3] 1 2 3 4 5 6", "l[2] 1 3", NULL},
    {"Shape", "start=-1 end=9", "f[2,1,3] 1 2 3 4 5 6", "l[1] 3", NULL},
    {"Reshape", "", "f[2,3] 1 2 3 4 5 6|l[2] 3 -1", "f[3,2] 1 2 3 4 5 6", NULL},
    {"Reshape", "", "f[0]|l[2] -1 1", "f[0,1]", NULL},
    {"Reshape", "", "f[2,3] 1 2 3 4 5 6|l[3] 0 1 3", "f[2,1,3] 1 2 3 4 5 6", NULL},
    {"Reshape", "allowzero=1", "f[0,3]|l[2] 0 5", "f[0,5]", NULL},
    {"Reshape", "allowzero=1", "f[2,0]|l[2] 0 3", "f[0,3]", NULL},
    {"Reshape", "", "l[] 7|l[1] 1", "l[1] 7", NULL},
    {"Reshape", "", "f[3] 1 2 3|l[1] 2", NULL, "3 cannot become 2"},
    {"Reshape", "", "f[3] 1 2 3|l[2] -1 -1", NULL, "a new dimension of -1"},
    {"Reshape", "", "f[3] 1 2 3|l[2] -1 2", NULL, "3 cannot become 1x2"},
    {"Reshape", "", "f[3] 1 2 3|f[1] 3", NULL, "float32 where integers are needed"},
    {"Reshape", "", "f[3] 1 2 3|l[9] 1 1 1 1 1 1 1 1 3", NULL, "a list of at most 8"},
    {"Flatten", "axis=1", "f[2,1,2] 1 2 3 4", "f[2,2] 1 2 3 4", NULL},
    {"Flatten", "axis=0", "f[2,1] 1 2", "f[1,2] 1 2", NULL},
    {"Flatten", "axis=2", "f[2,1] 1 2", "f[2,1] 1 2", NULL},
    {"Flatten", "axis=3", "f[2,1] 1 2", NULL, "no axis 3 in a tensor of rank 2"},
    {"Squeeze", "", "f[1,2,1] 1 2", "f[2] 1 2", NULL},
    {"Squeeze", "", "f[1,2,1] 1 2|l[1] -1", "f[1,2] 1 2", NULL},
    {"Squeeze", "axes=0", "f[1,2,1] 1 2", "f[2,1] 1 2", NULL},
    {"Squeeze", "", "f[1,2] 1 2|l[1] 1", NULL, "axis 1 has 2 elements"},
    {"Unsqueeze", "", "f[2] 1 2|l[2] 0 -1", "f[1,2,1] 1 2", NULL},
    {"Unsqueeze", "axes=1", "f[2] 1 2", "f[2,1] 1 2", NULL},
    {"Unsqueeze", "", "f[2] 1 2|l[1] 4", NULL, "no axis 4 in a tensor of rank 2"},
    {"Unsqueeze", "", "f[2] 1 2|l[2] 0 0", NULL, "axis 0 is named twice"},
    {"Unsqueeze", "", "f[2] 1 2", NULL, "it has no axes"},
    {"Transpose", "perm=1,0", "l[2,3] 1 2 3 4 5 6", "l[3,2] 1 4 2 5 3 6", NULL},
    {"Transpose", "", "b[1,2] 1 0", "b[2,1] 1 0", NULL},
    {"Transpose", "perm=1,0", "l[2,0]", "l[0,2]", NULL},
    {"Transpose", "perm=0,0", "l[2,1] 1 2", NULL, "perm is no permutation"},
    {"Transpose", "perm=0", "l[2,1] 1 2", NULL, "perm has 1 numbers for rank 2"},
    {"Concat", "axis=0", "f[1] 1|f[0]|f[2] 2 3", "f[3] 1 2 3", NULL},
    {"Concat", "axis=-1", "l[2,1] 1 2|l[2,2] 3 4 5 6", "l[2,3] 1 3 4 2 5 6", NULL},
    {"Concat", "axis=0", "f[1] 1|l[1] 1", NULL, "1 float32 and 1 int64 do not go together"},
    {"Concat", "axis=0", "f[1,2] 1 2|f[1,1] 1", NULL, "1x2 float32 and 1x1 float32"},
    {"Slice", "", "l[4] 1 2 3 4|l[1] 1|l[1] 3", "l[2] 2 3", NULL},
    {"Slice", "", "l[4] 1 2 3 4|l[1] 0|l[1] 9223372036854775807|l[1] 0|l[1] 2", "l[2] 1 3", NULL},
    {"Slice", "", "l[4] 1 2 3 4|l[1] -1|l[1] -9223372036854775807|l[1] 0|l[1] -1", "l[4] 4 3 2 1",
     NULL},
    {"Slice", "", "l[4] 1 2 3 4|l[1] 3|l[1] 0|l[1] 0|l[1] -2", "l[2] 4 2", NULL},
    {"Slice", "", "l[3] 1 2 3|l[1] -9|l[1] -10|l[1] 0|l[1] -1", "l[1] 1", NULL},
    {"Slice", "", "l[0]|l[1] 0|l[1] 300|l[1] 0|l[1] 1", "l[0]", NULL},
    {"Slice", "", "l[0]|l[1] -1|l[1] -5|l[1] 0|l[1] -1", "l[0]", NULL},
    {"Slice", "", "f[2,3] 1 2 3 4 5 6|l[1] 1|l[1] 2|l[1] -1", "f[2,1] 2 5", NULL},
    {"Slice", "", "f[2] 1 2|l[1] 0|l[1] 1|l[1] 0|l[1] 0", NULL, "a step of 0"},
    {"Slice", "", "f[2] 1 2|l[1] 0|l[2] 1 1", NULL, "1 starts, 2 ends"},
    {"Split", "axis=1", "f[2,2] 1 2 3 4", "f[2,1] 1 3|f[2,1] 2 4", NULL},
    {"Split", "axis=0", "f[3] 1 2 3|l[2] 1 2", "f[1] 1|f[2] 2 3", NULL},
    {"Split", "axis=0", "f[3] 1 2 3", "f[2] 1 2|f[1] 3", NULL},
    {"Split", "axis=0 split=0,3", "f[3] 1 2 3", "-|f[3] 1 2 3", NULL},
    {"Split", "axis=0", "f[3] 1 2 3|l[1] 2", NULL, "piece 0 has 2 elements, axis 0 has 3"},
    {"Expand", "", "f[2,1] 1 2|l[2] 1 2", "f[2,2] 1 1 2 2", NULL},
    {"Expand", "", "f[1] 5|l[1] 0", "f[0]", NULL},
    {"Expand", "", "f[2] 1 2|l[1] 3", NULL, "shapes 2 and 3 do not match"},
    {"Expand", "", "f[1] 1|l[1] -1", NULL, "a dimension of -1"},
    {"ConstantOfShape", "", "l[2] 1 2|l[1] 7", "l[1,2] 7 7", NULL},
    {"ConstantOfShape", "", "l[1] 2|-", "f[2] 0 0", NULL},
    {"ConstantOfShape", "", "l[1] -2|-", NULL, "a result of shape -2"},
    {"ConstantOfShape", "", "l[2] 4611686018427387904 4|-", NULL, "a result of shape"},
    {"Pad", "", "f[2] 1 2|l[2] 1 2", "f[5] 0 1 2 0 0", NULL},
    {"Pad", "", "f[1,2] 1 2|l[4] 0 -1 1 0|f[] 9", "f[2,1] 2 9", NULL},
    {"Pad", "", "f[2,2] 1 2 3 4|l[4] 0 -1 0 0", "f[2,1] 2 4", NULL},
    {"Pad", "", "f[0]|l[2] 0 3", "f[3] 0 0 0", NULL},
    {"Pad", "", "f[2] 1 2|l[1] 1", NULL, "1 pads for rank 1"},
    {"Pad", "", "f[2] 1 2|l[2] -3 4", NULL, "axis 0 of 2 is padded by -3"},
    {"Pad", "", "f[2] 1 2|l[2] 9223372036854775807 1", NULL, "is padded by"},
    {"Gather", "axis=0", "f[3] 1 2 3|l[] -1", "f[] 3", NULL},
    {"Gather", "axis=1", "f[2,3] 1 2 3 4 5 6|l[2] 2 0", "f[2,2] 3 1 6 4", NULL},
    {"Gather", "axis=0", "b[2,2] 1 0 0 1|i[1,1] 1", "b[1,1,2] 0 1", NULL},
    {"Gather", "axis=0", "f[0,4]|l[0]", "f[0,4]", NULL},
    {"Gather", "axis=0", "f[3] 1 2 3|l[1] 3", NULL, "index 3 of an axis of 3 elements"},
    {"Gather", "axis=0", "f[3] 1 2 3|l[1] -4", NULL, "index -4 of an axis of 3 elements"},
    {"Gather", "axis=0", "f[3] 1 2 3|f[1] 1", NULL, "float32 where integers are needed"},
    {"GatherND", "", "f[2,2] 1 2 3 4|l[2,1] 1 0", "f[2,2] 3 4 1 2", NULL},
    {"GatherND", "", "l[2,2] 1 2 3 4|l[2,2] 0 1 1 -2", "l[2] 2 3", NULL},
    {"GatherND", "", "f[5] 1 2 3 4 5|l[0,1]", "f[0]", NULL},
    {"GatherND", "", "f[2] 1 2|l[1,2] 0 0", NULL, "tuples of 2 indices for a tensor of rank 1"},
    {"GatherND", "", "f[2] 1 2|l[1,1] 2", NULL, "index 2 of an axis of 2"},
    {"GatherND", "batch_dims=1", "f[2] 1 2|l[1,1] 1", NULL, "batch_dims 1"},
    {"ScatterND", "", "f[4] 1 2 3 4|l[2,1] 3 0|f[2] 8 9", "f[4] 9 2 3 8", NULL},
    {"ScatterND", "", "f[1,2] 1 2|l[1,1] 0|f[1,2] 5 6", "f[1,2] 5 6", NULL},
    {"ScatterND", "", "f[4] 1 2 3 4|l[2,1] 1 1|f[2] 8 9", "f[4] 1 9 3 4", NULL},
    {"ScatterND", "", "f[4] 1 2 3 4|l[1,1] 4|f[1] 8", NULL, "index 4 of an axis of 4"},
    {"ScatterND", "", "f[4] 1 2 3 4|l[1,1] 1|f[2] 8 9", NULL,
     "updates of shape 2 of float32: shape 1 of float32 is needed"},
    {"Add", "", "f[2,1] 1 2|f[2] 10 20", "f[2,2] 11 21 12 22", NULL},
    {"Add", "", "l[1] 9223372036854775807|l[1] 1", "l[1] -9223372036854775808", NULL},
    {"Add", "", "f[2] 1 2|f[3] 1 2 3", NULL, "shapes 2 and 3 do not match"},
    {"Add", "", "f[1] 1|l[1] 1", NULL, "operands of float32 and int64"},
    {"Add", "", "b[1] 1|b[1] 1", NULL, "elements of bool"},
    {"Add", "", "f[0,4]|f[1,4] 1 2 3 4", "f[0,4]", NULL},
    {"Sub", "", "l[] 300|l[] 12", "l[] 288", NULL},
    {"Sub", "", "i[2] 1 -2147483648|i[1] 1", "i[2] 0 2147483647", NULL},
    {"Mul", "", "f[2] 3 -0|f[] 0.1", "f[2] 0.3 0", NULL},
    {"Mul", "", "l[2] 3 4|l[] -1", "l[2] -3 -4", NULL},
    {"Div", "", "l[3] 7 -7 9|l[] 2", "l[3] 3 -3 4", NULL},
    {"Div", "", "l[1] -9223372036854775808|l[] -1", "l[1] -9223372036854775808", NULL},
    {"Div", "", "f[3] 1 0 1|f[3] 3 0 0", "f[3] 0.333333343 nan inf", NULL},
    {"Div", "", "l[1] 7|l[2] 1 0", NULL, "a divisor is 0"},
    {"Mod", "", "l[4] 7 -7 7 -7|l[4] 3 3 -3 -3", "l[4] 1 2 -2 -1", NULL},
    {"Mod", "", "l[1] -9223372036854775808|l[] -1", "l[1] 0", NULL},
    {"Mod", "", "l[1] 7|l[] 0", NULL, "a divisor is 0"},
    {"Mod", "fmod=1", "l[1] 7|l[] 2", NULL, "fmod 1"},
    {"Mod", "", "f[1] 7|f[] 2", NULL, "elements of float32"},
    {"Max", "", "f[4] 1 nan 3 0|f[4] 2 1 nan -1", "f[4] 2 nan nan 0", NULL},
    {"Min", "", "f[4] 1 nan 3 0|f[4] 2 1 nan -1", "f[4] 1 nan nan -1", NULL},
    {"Max", "", "l[2] 1 5|l[] 3", "l[2] 3 5", NULL},
    {"Min", "", "l[2] 1 5|l[] 3", "l[2] 1 3", NULL},
    {"Clip", "", "f[4] -2 0 9 nan|f[] -1|f[] 1", "f[4] -1 0 1 nan", NULL},
    {"Clip", "", "f[2] -2 9|-|f[] 1", "f[2] -2 1", NULL},
    {"Clip", "", "l[2] -2 9|l[] 0", "l[2] 0 9", NULL},
    {"Clip", "", "f[1] 1|f[2] 0 1", NULL, "a limit of 2 elements"},
    {"Exp", "", "f[4] 0 1 -inf nan", "f[4] 1 2.71828175 0 nan", NULL},
    {"Sqrt", "", "f[3] 4 2 -1", "f[3] 2 1.41421354 nan", NULL},
    {"Sqrt", "", "l[1] 4", NULL, "elements of int64"},
    {"Equal", "", "l[3] 1 2 3|l[] 2", "b[3] 0 1 0", NULL},
    {"Equal", "", "f[2] nan 0|f[2] nan -0", "b[2] 0 1", NULL},
    {"Equal", "", "b[2] 1 0|b[2] 1 1", "b[2] 1 0", NULL},
    {"Less", "", "f[3] 1 2 nan|f[] 2", "b[3] 1 0 0", NULL},
    {"LessOrEqual", "", "i[2] 2 3|i[] 2", "b[2] 1 0", NULL},
    {"Greater", "", "f[2,1] 1 3|f[2] 2 nan", "b[2,2] 0 0 1 0", NULL},
    {"GreaterOrEqual", "", "l[2] 9007199254740993 1|l[] 9007199254740993", "b[2] 1 0", NULL},
    {"And", "", "b[4] 0 0 1 1|b[4] 0 1 0 1", "b[4] 0 0 0 1", NULL},
    {"Or", "", "b[4] 0 0 1 1|b[4] 0 1 0 1", "b[4] 0 1 1 1", NULL},
    {"Xor", "", "b[4] 0 0 1 1|b[4] 0 1 0 1", "b[4] 0 1 1 0", NULL},
    {"Xor", "", "l[1] 1|l[1] 1", NULL, "elements of int64"},
    {"Not", "", "b[2] 0 1", "b[2] 1 0", NULL},
    {"Where", "", "b[2,1] 1 0|l[2] 1 2|l[1] 9", "l[2,2] 1 2 9 9", NULL},
    {"Where", "", "b[1] 1|l[1] 1|f[1] 9", NULL, "a condition of bool, and int64 or float32"},
    {"Cast", "to=7", "f[5] 1.9 -1.9 nan inf 1e10", "l[5] 1 -1 0 9223372036854775807 10000000000",
     NULL},
    {"Cast", "to=1", "l[2] 16777217 -3", "f[2] 16777216 -3", NULL},
    {"Cast", "to=9", "f[3] 0 0.5 nan", "b[3] 0 1 1", NULL},
    {"Cast", "to=9", "l[2] 0 4294967296", "b[2] 0 1", NULL},
    {"Cast", "to=6", "l[2] 4294967297 -1", "i[2] 1 -1", NULL},
    {"Cast", "to=7", "b[2] 0 1", "l[2] 0 1", NULL},
    {"Cast", "to=11", "f[1] 0.1", "f[1] 0.1", NULL},
    {"Cast", "to=8", "f[1] 1", NULL, "a cast to element type 8"},
    {"ReduceMax", "keepdims=0", "f[2,2] 1 5 3 2", "f[] 5", NULL},
    {"ReduceMax", "keepdims=1 axes=1", "f[2,2] 1 5 3 2", "f[2,1] 5 3", NULL},
    {"ReduceMax", "keepdims=0", "f[2] nan 5", "f[] nan", NULL},
    {"ReduceMax", "keepdims=0", "f[0]", "f[] -inf", NULL},
    {"ReduceMin", "keepdims=0", "l[2] 400 12", "l[] 12", NULL},
    {"ReduceMin", "keepdims=0", "l[2,3] 4 5 6 1 8 9|l[1] 0", "l[3] 1 5 6", NULL},
    {"ReduceMin", "noop_with_empty_axes=1", "l[2] 4 5|l[0]", "l[2] 4 5", NULL},
    {"ReduceProd", "keepdims=0", "l[2] 0 4", "l[] 0", NULL},
    {"ReduceProd", "keepdims=0", "l[2] 3 4", "l[] 12", NULL},
    {"ReduceProd", "keepdims=0", "b[2] 1 1", NULL, "elements of bool"},
    {"NonZero", "", "b[4] 0 1 0 1", "l[1,2] 1 3", NULL},
    {"NonZero", "", "f[2,2] 0 nan -0 2", "l[2,2] 0 1 1 1", NULL},
    {"NonZero", "", "i[2] 0 0", "l[1,0]", NULL},
    {"NonZero", "", "l[0,3]", "l[2,0]", NULL},
    {"NonZero", "", "f[] 1", NULL, "an operand of rank 0"},
    {"TopK", "axis=-1", "f[5] 1 3 2 3 nan|l[1] 4", "f[4] nan 3 3 2|l[4] 4 1 3 2", NULL},
    {"TopK", "axis=-1 largest=0", "f[5] 1 3 0 -0 nan|l[1] 5", "f[5] 0 -0 1 3 nan|l[5] 2 3 0 1 4",
     NULL},
    {"TopK", "axis=0", "f[2,2] 1 4 3 2|l[1] 1", "f[1,2] 3 4|l[1,2] 1 0", NULL},
    {"TopK", "axis=0", "l[3] -9223372036854775808 9223372036854775807 0|l[1] 2",
     "l[2] 9223372036854775807 0|l[2] 1 2", NULL},
    {"TopK", "axis=0 largest=0", "l[3] -9223372036854775808 5 0|l[1] 1",
     "l[1] -9223372036854775808|l[1] 0", NULL},
    {"TopK", "axis=0", "f[0]|l[1] 0", "f[0]|l[0]", NULL},
    {"TopK", "axis=0", "f[2] -inf -1|l[1] 1", "-|l[1] 1", NULL},
    {"TopK", "axis=0", "f[2] 1 2|l[1] 3", NULL, "the first 3 of 2 elements"},
    {"TopK", "axis=0", "f[2] 1 2|l[2] 1 1", NULL, "operand 1 has 2 elements: one is needed"},
    {"TopK", "axis=2", "f[2] 1 2|l[1] 1", NULL, "no axis 2 in a tensor of rank 1"},
    {"TopK", "axis=0", "f[2] 1 2|l[1] -1", NULL, "the first -1 of 2 elements"},
    /* boxes y, x, y, x: the second overlaps the first by 1/3, the third lies apart, the fourth is
       the first with its corners exchanged */
    {"NonMaxSuppression", "",
     "f[1,4,4] 0 0 2 2 0 1 2 3 5 5 6 6 2 2 0 0|f[1,1,4] 0.9 0.8 0.7 0.6|l[1] 9|f[1] 0.3",
     "l[2,3] 0 0 0 0 0 2", NULL},
    {"NonMaxSuppression", "",
     "f[1,4,4] 0 0 2 2 0 1 2 3 5 5 6 6 2 2 0 0|f[1,1,4] 0.9 0.8 0.7 0.6|l[1] 9|f[1] 0.5",
     "l[3,3] 0 0 0 0 0 1 0 0 2", NULL},
    /* equal scores: the first is first; as many as allowed */
    {"NonMaxSuppression", "", "f[1,3,4] 0 0 1 1 2 2 3 3 4 4 5 5|f[1,1,3] 0.5 0.5 0.5|l[] 2|f[] 0.5",
     "l[2,3] 0 0 0 0 0 1", NULL},
    /* as many as allowed of each class */
    {"NonMaxSuppression", "", "f[1,2,4] 0 0 1 1 2 2 3 3|f[1,2,2] 0.5 0.6 0.7 0.4|l[] 1|f[] 0.5",
     "l[2,3] 0 0 1 0 1 0", NULL},
    /* half of the first box: the overlap is the threshold, and not above it */
    {"NonMaxSuppression", "", "f[1,2,4] 0 0 2 2 0 0 2 1|f[1,1,2] 0.9 0.8|l[] 9|f[] 0.5",
     "l[2,3] 0 0 0 0 0 1", NULL},
    /* the order is batch, class, score; a score has to be above the threshold */
    {"NonMaxSuppression", "",
     "f[2,2,4] 0 0 1 1 2 2 3 3 0 0 1 1 2 2 3 3|f[2,2,2] 0.1 0.4 0.9 0.2 0.3 0.3 nan 0.8|l[1] "
     "9|f[1] 0.5|f[1] 0.2",
     "l[5,3] 0 0 1 0 1 0 1 0 0 1 0 1 1 1 1", NULL},
    /* centre x, centre y, width, height: 2 x 2 and the same moved by 1 */
    {"NonMaxSuppression", "center_point_box=1",
     "f[1,2,4] 1 1 2 2 2 1 2 2|f[1,1,2] 0.5 0.9|l[1] 9|f[1] 0.3", "l[1,3] 0 0 1", NULL},
    {"NonMaxSuppression", "center_point_box=1",
     "f[1,2,4] 1 1 2 2 2 1 2 2|f[1,1,2] 0.5 0.9|l[1] 9|f[1] 0.4", "l[2,3] 0 0 1 0 0 0", NULL},
    /* NaN scores and boxes without area or with NaN drop nothing; NaN scores come last */
    {"NonMaxSuppression", "",
     "f[1,4,4] 0 0 0 0 0 0 0 0 nan 0 1 1 0 0 1 1|f[1,1,4] nan 0.5 0.4 0.3|l[1] 9|f[1] 0",
     "l[4,3] 0 0 1 0 0 2 0 0 3 0 0 0", NULL},
    /* boxes that touch do not overlap */
    {"NonMaxSuppression", "", "f[1,2,4] 0 0 1 1 0 1 1 2|f[1,1,2] 0.5 0.4|l[1] 9|f[1] 0",
     "l[2,3] 0 0 0 0 0 1", NULL},
    {"NonMaxSuppression", "", "f[1,0,4]|f[1,2,0]|l[1] 9|f[1] 0.5", "l[0,3]", NULL},
    {"NonMaxSuppression", "", "f[1,1,4] 0 0 1 1|f[1,1,1] 1", "l[0,3]", NULL}, /* most is 0 */
    {"NonMaxSuppression", "", "f[1,1,4] 0 0 1 1|f[1,1,2] 1 1|l[1] 9|f[1] 0.5", NULL,
     "boxes 1x1x4 and scores 1x1x2"},
    {"NonMaxSuppression", "", "f[1,1,4] 0 0 1 1|f[1,1,1] 1|l[1] 9|f[1] 1.5", NULL,
     "an iou_threshold of 1.5"},
    {"NonMaxSuppression", "center_point_box=2", "f[1,1,4] 0 0 1 1|f[1,1,1] 1|l[1] 9|f[1] 0", NULL,
     "center_point_box 2"},
    {"NonMaxSuppression", "", "f[1,1,4] 0 0 1 1|f[1,1,1] 1|l[2] 9 9|f[1] 0", NULL,
     "operand 2 has 2 elements: one is needed"},
    {"NonMaxSuppression", "", "f[1,1,4] 0 0 1 1|f[1,1,1] 1|l[1] 9|l[1] 0", NULL,
     "operand 3 is not one float32"},
/* Three boxes of two classes. The second is half of the first, the third is alone. */
#define THREE "f[1,3,4] 0 0 2 2 0 0 2 1 4 4 6 6|f[1,3,2] 0.9 0.1 0.8 0.75 0.2 0.6"
    /* an overlap of the threshold is too much, a score of the threshold is enough */
    {"EfficientNMS_TRT", "score_threshold=0.2 iou_threshold=0.5 max_output_boxes=5", THREE,
     "i[1,1] 4|f[1,5,4] 0 0 2 2 0 0 2 1 4 4 6 6 4 4 6 6 0 0 0 0|f[1,5] 0.9 0.75 0.6 0.2 0|i[1,5] "
     "0 1 1 0 0",
     NULL},
    {"EfficientNMS_TRT", "score_threshold=0.2 iou_threshold=0.51 max_output_boxes=2", THREE,
     "i[1,1] 2|f[1,2,4] 0 0 2 2 0 0 2 1|f[1,2] 0.9 0.8|i[1,2] 0 0", NULL},
    {"EfficientNMS_TRT",
     "score_threshold=0.2 iou_threshold=0.5 max_output_boxes=3 class_agnostic=1", THREE,
     "i[1,1] 2|f[1,3,4] 0 0 2 2 4 4 6 6 0 0 0 0|f[1,3] 0.9 0.6 0|i[1,3] 0 1 0", NULL},
    {"EfficientNMS_TRT",
     "score_threshold=0.2 iou_threshold=0.5 max_output_boxes=2 background_class=1", THREE,
     "i[1,1] 2|-|f[1,2] 0.9 0.2|-", NULL},
    {"EfficientNMS_TRT", "score_threshold=0.95 iou_threshold=0.5 max_output_boxes=1", THREE,
     "i[1,1] 0|f[1,1,4] 0 0 0 0|f[1,1] 0|i[1,1] 0", NULL},
    /* equal scores: the first box is first, of one box the first class */
    {"EfficientNMS_TRT", "score_threshold=0 iou_threshold=1 max_output_boxes=3",
     "f[1,2,4] 0 0 1 1 2 2 3 3|f[1,2,2] 0.5 0.5 0.5 0.5",
     "i[1,1] 3|f[1,3,4] 0 0 1 1 0 0 1 1 2 2 3 3|f[1,3] 0.5 0.5 0.5|i[1,3] 0 1 0", NULL},
    /* sigmoids: of 0, 0.5 */
    {"EfficientNMS_TRT",
     "score_threshold=0.5 iou_threshold=0.5 max_output_boxes=3 score_activation=1",
     "f[1,4,4] 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7|f[1,4,1] -0.1 0 inf nan",
     "i[1,1] 2|f[1,3,4] 4 4 5 5 2 2 3 3 0 0 0 0|f[1,3] 1 0.5 0|i[1,3] 0 0 0", NULL},
    /* centre and size: the second is the first moved by a half of its width */
    {"EfficientNMS_TRT", "score_threshold=0.1 iou_threshold=0.3 max_output_boxes=2 box_coding=1",
     "f[1,2,4] 1 1 2 2 2 1 2 2|f[1,2,1] 0.5 0.9", "i[1,1] 1|f[1,2,4] 1 0 3 2 0 0 0 0|-|-", NULL},
    {"EfficientNMS_TRT", "score_threshold=0.1 iou_threshold=0.4 max_output_boxes=2 box_coding=1",
     "f[1,2,4] 1 1 2 2 2 1 2 2|f[1,2,1] 0.5 0.9", "i[1,1] 2|f[1,2,4] 1 0 3 2 0 0 2 2|-|-", NULL},
    /* anchors: corners are put in order and added; centres are scaled and moved */
    {"EfficientNMS_TRT", "score_threshold=0 iou_threshold=1 max_output_boxes=1",
     "f[1,1,4] 1 1 -1 -1|f[1,1,1] 1|f[1,1,4] 4 2 2 4", "-|f[1,1,4] 1 1 5 5|f[1,1] 1|-", NULL},
    {"EfficientNMS_TRT", "score_threshold=0 iou_threshold=1 max_output_boxes=2 box_coding=1",
     "f[1,2,4] 0 0 0 0 0.5 0.25 0 0.693147181|f[1,2,1] 0.1 1|f[1,2,4] 1 1 2 2 10 20 4 8",
     "-|f[1,2,4] 10 14 14 30 0 0 2 2|-|-", NULL},
    /* a box for each class, in tensors of four axes */
    {"EfficientNMS_TRT", "score_threshold=0 iou_threshold=1 max_output_boxes=4",
     "f[1,2,2,4] 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7|f[1,2,2,1] 0.1 0.2 0.3 0.4",
     "-|f[1,4,4] 6 6 7 7 4 4 5 5 2 2 3 3 0 0 1 1|-|i[1,4] 1 0 1 0", NULL},
    {"EfficientNMS_TRT", "score_threshold=0 iou_threshold=1 max_output_boxes=2",
     "f[1,1,1,4] 0 0 1 1|f[1,1,2] 0.1 0.2", "-|f[1,2,4] 0 0 1 1 0 0 1 1|-|i[1,2] 1 0", NULL},
    /* corners in any order overlap, and stay as they are; NaN drops nothing */
    {"EfficientNMS_TRT", "score_threshold=0 iou_threshold=0.9 max_output_boxes=3",
     "f[1,3,4] 2 2 0 0 0 0 2 2 nan 0 2 2|f[1,3,1] 0.9 0.8 0.7",
     "i[1,1] 2|f[1,3,4] 2 2 0 0 nan 0 2 2 0 0 0 0|-|-", NULL},
    {"EfficientNMS_TRT", "score_threshold=0 iou_threshold=1 max_output_boxes=1",
     "f[1,0,4]|f[1,0,2]", "i[1,1] 0|f[1,1,4] 0 0 0 0|f[1,1] 0|i[1,1] 0", NULL},
    {"EfficientNMS_TRT", "score_threshold=0 iou_threshold=1 max_output_boxes=1",
     "f[1,1,4] 0 0 1 1|f[1,1,0]", "i[1,1] 0|-|-|-", NULL},
#define REFUSED "score_threshold=0 iou_threshold=1 max_output_boxes=1"
    {"EfficientNMS_TRT", REFUSED, "f[1,2,4] 0 0 1 1 0 0 1 1|f[1,3,1] 1 1 1", NULL,
     "boxes 1x2x4, scores 1x3x1 and anchors none; (1, boxes, 4) or"},
    {"EfficientNMS_TRT", REFUSED, "f[1,1,4] 0 0 1 1|f[1,1,1] 1|f[1,2,4] 0 0 1 1 0 0 1 1", NULL,
     "and anchors 1x2x4"},
    {"EfficientNMS_TRT", REFUSED, "f[1,1,3,4] 0 0 1 1 0 0 1 1 0 0 1 1|f[1,1,2] 1 1", NULL,
     "boxes 1x1x3x4, scores 1x1x2"},
    {"EfficientNMS_TRT", REFUSED, "f[2,1,4] 0 0 1 1 0 0 1 1|f[2,1,1] 1 1", NULL, "boxes 2x1x4"},
    {"EfficientNMS_TRT", REFUSED, "f[1,1,5] 0 0 1 1 0|f[1,1,1] 1", NULL, "boxes 1x1x5"},
    {"EfficientNMS_TRT", REFUSED, "f[1,4] 0 0 1 1|f[1,1] 1", NULL, "boxes 1x4, scores 1x1"},
    {"EfficientNMS_TRT", REFUSED, "f[] 0|f[] 0", NULL, "of float32 are needed"},
    {"EfficientNMS_TRT", REFUSED, "f[1,1,4] 0 0 1 1|l[1,1,1] 1", NULL, "of float32 are needed"},
    {"EfficientNMS_TRT", REFUSED, "f[1,1,4] 0 0 1 1|-", NULL, "operand 1 is missing"},
};
enum { N_EXAMPLES = sizeof examples / sizeof examples[0], MOST_ELEMS = 32 };

/* --- reading tensors --- */

static enum rfx_type type_of(char letter) {
    switch (letter) {
        case 'f':
            return RFX_TYPE_FLOAT32;
        case 'l':
            return RFX_TYPE_INT64;
        case 'i':
            return RFX_TYPE_INT32;
        case 'b':
            return RFX_TYPE_BOOL;
        default:
            fail_msg("type '%c'", letter);
    }
    return RFX_TYPE_COUNT;
}

static const char *read_shape(const char *text, struct rfx_shape *shape) {
    *shape = (struct rfx_shape){0};
    text += 2; /* letter and bracket */
    while (*text != ']') {
        char *end;
        shape->dims[shape->rank++] = strtoll(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return text + 1;
}

/* Reads the elements of a tensor. */
static void read_elems(const char *text, enum rfx_type type, int64_t n, void *data) {
    for (int64_t i = 0; i < n; i++) {
        char *end;
        if (type == RFX_TYPE_FLOAT32)
            ((float *)data)[i] = strtof(text, &end);
        else if (type == RFX_TYPE_INT64)
            ((int64_t *)data)[i] = strtoll(text, &end, 10);
        else if (type == RFX_TYPE_INT32)
            ((int32_t *)data)[i] = (int32_t)strtoll(text, &end, 10);
        else
            ((unsigned char *)data)[i] = (unsigned char)strtol(text, &end, 10);
        if (end == text) fail_msg("element %d of '%s'", (int)i, text);
        text = end;
    }
}

static int add_constant(struct rfx_late *late, const char *text) {
    struct rfx_shape shape;
    int64_t elems;
    void *data;
    if (*text == '-') return -1;
    const char *values = read_shape(text, &shape);
    assert_true(rfx_late_elems(&shape, &elems));
    int value = rfx_late_add_constant(late, type_of(*text), &shape, &data);
    if (value >= 0) read_elems(values, type_of(*text), elems, data);
    return value;
}

static void expect_tensor(const struct example *e, const struct rfx_late_tensor *found,
                          const char *text) {
    unsigned char wanted[MOST_ELEMS * sizeof(int64_t)];
    struct rfx_shape shape;
    const char *values = read_shape(text, &shape);
    if (found->type != type_of(*text) || !rfx_shape_equal(&found->shape, &shape))
        fail_msg("%s of '%s': another shape or type than %s", e->op, e->in, text);
    read_elems(values, found->type, found->elems, wanted);
    for (int64_t i = 0; i < found->elems; i++) {
        size_t bytes = rfx_type_bytes(found->type);
        const float *a = (const float *)found->data, *b = (const float *)(const void *)wanted;
        bool same = memcmp((const char *)found->data + (size_t)i * bytes,
                           wanted + (size_t)i * bytes, bytes) == 0;
        if (found->type == RFX_TYPE_FLOAT32) same = a[i] == b[i] || (isnan(a[i]) && isnan(b[i]));
        if (!same) fail_msg("%s of '%s': element %d is not as in %s", e->op, e->in, (int)i, text);
    }
}

/* --- programs of one node --- */

static int count(const char *text) {
    int n = 1;
    for (; *text != '\0'; text++) n += *text == '|';
    return n;
}

static const char *part(const char *text, int k) {
    for (; k > 0; text++) k -= *text == '|';
    return text;
}

static void set_attribute(struct rfx_late *late, struct rfx_late_node *node, const char *text) {
    size_t length = strcspn(text, "=");
    for (int i = 0; i < RFX_LATE_INTS && node->op->ints[i].name != NULL; i++)
        if (strlen(node->op->ints[i].name) == length &&
            memcmp(node->op->ints[i].name, text, length) == 0) {
            node->ints[i] = strtoll(text + length + 1, NULL, 10);
            return;
        }
    for (int i = 0; node->op->more != NULL && i < RFX_LATE_REALS; i++) {
        const char *name = node->op->more->reals[i];
        if (name == NULL || strlen(name) != length || memcmp(name, text, length) != 0) continue;
        node->reals[i] = strtof(text + length + 1, NULL);
        return;
    }
    if (node->op->list == NULL || memcmp(node->op->list, text, length) != 0)
        fail_msg("%s has no attribute %s", node->op->name, text);
    node->list = rfx_memory_calloc(late->mem, RFX_MAX_RANK, sizeof *node->list);
    assert_non_null(node->list);
    for (const char *at = text + length; *at == '=' || *at == ',';) {
        char *end;
        node->list[node->n_list++] = strtoll(at + 1, &end, 10);
        at = end;
    }
}

static void set_attributes(struct rfx_late *late, struct rfx_late_node *node, const char *text) {
    for (int i = 0; i < RFX_LATE_INTS && node->op->ints[i].name != NULL; i++)
        node->ints[i] = node->op->ints[i].otherwise;
    while (*text != '\0') {
        set_attribute(late, node, text);
        text += strcspn(text, " ");
        text += *text == ' ';
    }
}

/* Adds a node with its operands as constants; its results are outputs. */
static void add_example(struct rfx_late *late, const struct example *e) {
    const struct rfx_late_op *op = rfx_late_op_find(e->op);
    const char *out = e->out != NULL ? e->out : "f[]";
    if (op == NULL) fail_msg("no operator %s", e->op);
    struct rfx_late_node *node =
        rfx_late_add_node(late, &late->block, op, "example", count(e->in), count(out));
    assert_non_null(node);
    set_attributes(late, node, e->attrs);
    for (int k = 0; k < node->n_in; k++) node->in[k] = add_constant(late, part(e->in, k));
    for (int k = 0; k < node->n_out; k++) {
        if (*part(out, k) == '-') continue;
        node->out[k] = rfx_late_add_value(late, -1);
        assert_non_null(rfx_late_add_output(late, "y", node->out[k]));
    }
}

static void run_example(const struct example *e) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_late *late = rfx_late_create(mem);
    struct rfx_graph graph = {.late = late};
    struct rfx_late_run *run = NULL;
    struct rfx_error err = {""};
    add_example(late, e);
    assert_int_equal(rfx_late_run_create(&graph, mem, 0, &run, &err), RFX_OK);
    enum rfx_status status = rfx_late_run_nodes(run, &err);
    if (e->out == NULL) {
        bool right = status == RFX_STATUS_MALFORMED || status == RFX_STATUS_UNSUPPORTED;
        if (!right || strstr(err.text, e->words) == NULL || strstr(err.text, "'example'") == NULL)
            fail_msg("%s of '%s': status %d, %s", e->op, e->in, (int)status, err.text);
    } else if (status != RFX_OK) {
        fail_msg("%s of '%s': %s", e->op, e->in, err.text);
    }
    size_t n = 0;
    for (int k = 0; e->out != NULL && k < count(e->out); k++)
        if (*part(e->out, k) != '-')
            expect_tensor(e, rfx_late_run_output(run, n++), part(e->out, k));
    rfx_late_run_free(run);
    rfx_late_free(late);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void every_example(void **state) {
    (void)state;
    for (int i = 0; i < N_EXAMPLES; i++) run_example(&examples[i]);
}

/* Attributes that are refused when a model is loaded. */
static void attributes_are_checked(void **state) {
    static const struct {
        const char *attrs, *why;
    } cases[] = {
        {"score_threshold=0 iou_threshold=1 max_output_boxes=1000000", ""},
        {"score_threshold=1 iou_threshold=0.001 max_output_boxes=1 background_class=-7", ""},
        {"score_threshold=-0.1 iou_threshold=1 max_output_boxes=1",
         "score_threshold is -0.1: 0 to 1 is needed"},
        {"score_threshold=nan iou_threshold=1 max_output_boxes=1", "score_threshold is nan"},
        {"score_threshold=1e30 iou_threshold=1 max_output_boxes=1", "score_threshold is 1e+30"},
        {"score_threshold=0 iou_threshold=0 max_output_boxes=1",
         "iou_threshold is 0: above 0 to 1 is needed"},
        {"score_threshold=0 iou_threshold=nan max_output_boxes=1", "iou_threshold is nan"},
        {"score_threshold=0 iou_threshold=1.5 max_output_boxes=1", "iou_threshold is 1.5"},
        {"score_threshold=0 iou_threshold=1 max_output_boxes=0",
         "max_output_boxes is 0: 1 to 1000000 are possible"},
        {"score_threshold=0 iou_threshold=1 max_output_boxes=-5", "max_output_boxes is -5"},
        {"score_threshold=0 iou_threshold=1 max_output_boxes=1000001",
         "max_output_boxes is 1000001"},
        {"score_threshold=0 iou_threshold=1 max_output_boxes=1 score_activation=2",
         "score_activation is 2: 0 or 1 is needed"},
        {"score_threshold=0 iou_threshold=1 max_output_boxes=1 box_coding=-1", "box_coding is -1"},
        {"score_threshold=0 iou_threshold=1 max_output_boxes=1 class_agnostic=9",
         "class_agnostic is 9"},
    };
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_late *late = rfx_late_create(mem);
    const struct rfx_late_op *op = rfx_late_op_find("EfficientNMS_TRT");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_late_node *node = rfx_late_add_node(late, &late->block, op, "node", 2, 4);
        char why[RFX_LATE_WHY] = "";
        assert_non_null(node);
        set_attributes(late, node, cases[i].attrs);
        op->check(node, why);
        if (strncmp(why, cases[i].why, strlen(cases[i].why)) != 0 ||
            (why[0] == '\0') != (cases[i].why[0] == '\0'))
            fail_msg("%s: '%s'", cases[i].attrs, why);
    }
    rfx_late_free(late);
    rfx_memory_free(mem);
}

static void every_operator_has_an_example(void **state) {
    (void)state;
    for (int i = 0; rfx_late_op_at(i) != NULL; i++) {
        const struct rfx_late_op *op = rfx_late_op_at(i);
        bool found = op->run == NULL; /* If: test_late_run.c */
        for (int k = 0; k < N_EXAMPLES && !found; k++)
            found = examples[k].out != NULL && strcmp(examples[k].op, op->name) == 0;
        if (!found) fail_msg("%s", op->name);
    }
    assert_null(rfx_late_op_find("Loop"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example),
        cmocka_unit_test(attributes_are_checked),
        cmocka_unit_test(every_operator_has_an_example),
    };
    return cmocka_run_group_tests_name("late_ops", tests, NULL, NULL);
}

"""Keras's networks as files of LiteRT on 8 bits, for bench_peers.py.

    convert_litert.py NETWORK HxW OUT.tflite

NETWORK is one of NETWORKS. The architecture is that of rfexec's built-in network, the weights
are others: Keras draws them from a fixed seed. Ranges come from a few random pictures. Every
operator computes in int8, with a scale for each output channel of the weights. The input
[1, h, w, 3] and the output [1, 1000] are float32, as for the other programs: the first operator
quantises the picture, the last one makes floats of the logits, and both are inside the measured
time.

Needs TensorFlow, and the memory of a run in float32.
"""

import os
import pathlib
import sys

# Name of the built-in -> function of keras.applications, its arguments, how it differs.
NETWORKS = {
    "mobilenet_v2:int8": ("MobileNetV2", {"alpha": 1.0}, "the same multiply-adds"),
    "resnet50:int8": ("ResNet50", {},
                      "6 % fewer multiply-adds: its strides are in 1x1 convolutions"),
}
SEED, PICTURES = 1, 3
DRAWN_SIZE = 224, 224


def pictures(height, width):
    """Values as in the picture that is measured: of a normal distribution."""
    import numpy as np

    generator = np.random.default_rng(SEED)
    for _ in range(PICTURES):
        yield [generator.standard_normal((1, height, width, 3), np.float32)]


def draw_weights(keras, build):
    """Drawn kernels, and norms that fit them. Without such norms the values of MobileNetV2 fade
    from layer to layer, until all are zero in 8 bits."""
    import numpy as np

    keras.utils.set_random_seed(SEED)
    network = build(*DRAWN_SIZE)
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0  # the statistics of one batch replace those there are
    network(np.concatenate([image for image, in pictures(*DRAWN_SIZE)]), training=True)
    return network.get_weights()


def convert(name, size, out):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    try:
        import tensorflow
    except ImportError as error:
        sys.exit(f"TensorFlow, which makes LiteRT's files, is not installed: {error}")
    keras = tensorflow.keras
    application, arguments, _ = NETWORKS[name]

    def build(height, width):
        return getattr(keras.applications, application)(
            weights=None, include_top=True, classifier_activation=None,
            input_shape=(height, width, 3), **arguments)
    height, width = map(int, size.split("x"))
    network = build(height, width)
    network.set_weights(draw_weights(keras, build))
    converter = tensorflow.lite.TFLiteConverter.from_keras_model(network)
    converter.optimizations = [tensorflow.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: pictures(height, width)
    converter.target_spec.supported_ops = [tensorflow.lite.OpsSet.TFLITE_BUILTINS_INT8]
    pathlib.Path(out).write_bytes(converter.convert())


if __name__ == "__main__":
    convert(*sys.argv[1:])

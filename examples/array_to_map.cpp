// An array through a network, in C++: what has to be freed is, and failures are exceptions.
//     array_to_map NET.onnx ROWS COLUMNS BYTES
//     c++ array_to_map.cpp $(pkg-config --cflags --libs rfexec) -o array_to_map
// With data/defect_net.onnx 1024 768 17000000 it prints
//     defects: 36864 values, the largest 0.885291874 is number 36862
#include <rfexec/rfexec.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

static void check(rfx_code code, const rfx_why &why) {
    if (code != RFX_CODE_OK) throw std::runtime_error(why.text);
}

struct Free {
    void operator()(rfx_network *network) const { rfx_network_free(network); }
};
using Network = std::unique_ptr<rfx_network, Free>;

static Network open(const char *model, int64_t rows, int64_t columns) {
    rfx_open_options options;
    rfx_why why;
    rfx_network *network = nullptr;
    rfx_open_options_init(&options, sizeof options);
    options.rows = rows;
    options.columns = columns;
    check(rfx_network_open(model, &options, &network, &why), why);
    return Network(network);
}

int main(int argc, char **argv) try {
    if (argc != 5) return 2;
    Network network = open(argv[1], std::atoll(argv[2]), std::atoll(argv[3]));
    int64_t dims[4];
    rfx_network_input_shape(network.get(), dims);
    std::vector<float> image(static_cast<size_t>(dims[1] * dims[2] * dims[3]));
    for (size_t i = 0; i < image.size(); i++) image[i] = static_cast<float>(i % 251) / 125.0F - 1.0F;
    std::vector<float> map(static_cast<size_t>(rfx_network_output_elements(network.get(), 0)));
    float *outputs[] = {map.data()};
    rfx_run_options options;
    rfx_why why;
    rfx_run_options_init(&options, sizeof options);
    options.memory_bytes = std::strtoull(argv[4], nullptr, 10); // beside the two arrays
    check(rfx_network_run_values(network.get(), image.data(), outputs, 1, &options, &why), why);
    auto most = std::max_element(map.begin(), map.end());
    std::printf("%s: %zu values, the largest %.9g is number %td\n",
                rfx_network_output_name(network.get(), 0), map.size(), static_cast<double>(*most),
                most - map.begin());
} catch (const std::exception &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
}

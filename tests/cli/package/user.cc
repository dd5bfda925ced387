// The same as user.c, as a C++ program writes it: prints the same lines.
#include <rfexec/rfexec.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

static_assert(std::is_standard_layout<rfx_run_options>::value, "a struct of C");

namespace {

constexpr int kRows = 97, kColumns = 64, kChannels = 3;

struct Free {
    void operator()(rfx_network *net) const { rfx_network_free(net); }
};
using Network = std::unique_ptr<rfx_network, Free>;

void expect(rfx_code wanted, rfx_code code, const rfx_why &why) {
    if (code != wanted) throw std::runtime_error("code " + std::to_string(code) + ": " + why.text);
}

rfx_run_options options_for(std::size_t memory_bytes) {
    rfx_run_options options;
    rfx_run_options_init(&options, sizeof options);
    options.memory_bytes = memory_bytes;
    options.threads = 1;
    return options;
}

rfx_forecast predict(rfx_network *net, std::size_t memory_bytes, rfx_code wanted) {
    rfx_forecast forecast{};
    rfx_why why;
    forecast.size = sizeof forecast;
    const rfx_run_options options = options_for(memory_bytes);
    expect(wanted, rfx_network_predict(net, nullptr, &options, &forecast, &why), why);
    return forecast;
}

std::vector<float> run(rfx_network *net, const std::vector<float> &image,
                       std::size_t memory_bytes) {
    std::vector<float> out(static_cast<std::size_t>(rfx_network_output_elements(net, 0)));
    float *const outputs[] = {out.data()};
    rfx_why why;
    const rfx_run_options options = options_for(memory_bytes);
    expect(RFX_CODE_OK, rfx_network_run_values(net, image.data(), outputs, 1, &options, &why), why);
    return out;
}

bool compare() {
    std::vector<float> image(kChannels * kRows * kColumns);
    for (std::size_t i = 0; i < image.size(); i++)
        image[i] = static_cast<float>(i * 37 % 256) / 255.0f;
    rfx_open_options options;
    rfx_why why;
    rfx_network *opened = nullptr;
    rfx_open_options_init(&options, sizeof options);
    options.rows = kRows;
    options.columns = kColumns;
    expect(RFX_CODE_OK, rfx_network_open("fsrcnn", &options, &opened, &why), why);
    const Network net(opened);
    const rfx_forecast whole = predict(net.get(), 0, RFX_CODE_OK);
    const rfx_forecast least = predict(net.get(), 1, RFX_CODE_BUDGET);
    const std::vector<float> a = run(net.get(), image, 0);
    const std::vector<float> b = run(net.get(), image, least.peak_bytes);
    const bool same = std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    std::printf("%s: %zu bytes\n%s: %zu bytes\n%s bits\n", whole.plan, whole.peak_bytes, least.plan,
                least.peak_bytes, same ? "the same" : "OTHER");
    return same && least.peak_bytes < whole.peak_bytes;
}

}  // namespace

int main() try {
    std::printf("rfexec %s, header %d.%d.%d\n", rfx_version(), RFX_VERSION_MAJOR, RFX_VERSION_MINOR,
                RFX_VERSION_PATCH);
    return compare() ? 0 : 1;
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}

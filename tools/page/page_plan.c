/* The plan's picture: where the buffers of each stage lie. */
#include "layers/core/printable.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/splits.h"
#include "tools/cli/report.h"
#include "tools/page/page_sections.h"

enum { LEFT = 70, WIDTH = 1000, TOP = 24, HEIGHT = 340, BOTTOM = 44 };

static const struct {
    const char *name, *fill;
} kinds[] = {
    [RFX_ARENA_STORED] = {"whole maps", "#e69f00"},
    [RFX_ARENA_LOCAL] = {"own maps of a stage", "#56b4e9"},
    [RFX_ARENA_FRESH] = {"new rows of a step", "#009e73"},
    [RFX_ARENA_PACKED] = {"weights of the stage", "#cc79a7"},
};
_Static_assert(sizeof kinds / sizeof kinds[0] == RFX_ARENA_COUNT, "a colour per kind");

/* Where a stage lies: [x, x + width). */
struct slot {
    double x, width;
    int first, steps; /* steps that are drawn: those of the nodes it computes */
};

static struct slot slot_of(const struct rfx_plan *plan, int stage) {
    double width = (double)(WIDTH - LEFT) / plan->n_stages;
    const struct rfx_stage *s = &plan->stages[stage];
    return (struct slot){LEFT + width * stage, width, s->first, s->last - s->first + 1};
}

static double x_of(const struct slot *slot, int step) {
    int at = step - slot->first;
    at = at < 0 ? 0 : at > slot->steps ? slot->steps : at;
    return slot->x + slot->width * at / slot->steps;
}

static double y_of(size_t address, size_t arena) {
    return TOP + HEIGHT - (double)HEIGHT * (double)address / (double)arena;
}

static void put_box(struct rfx_run_page *page, const struct slot *slot,
                    const struct rfx_arena_box *box, size_t arena) {
    double x = x_of(slot, box->first), right = x_of(slot, box->last + 1);
    double y = y_of(box->offset + box->bytes, arena), below = y_of(box->offset, arena);
    char bytes[RFX_HUMAN_CHARS];
    if (right - x < 0.05 || below - y < 0.05) return; /* nobody would see it */
    rfx_html_format(&page->html,
                    "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" "
                    "stroke=\"#fff\" stroke-width=\"0.4\"><title>",
                    x, y, right - x, below - y, kinds[box->kind].fill);
    rfx_html_text(&page->html, page->job->plan->graph->nodes[box->node].name);
    rfx_html_format(&page->html, ", %s: %s at byte %zu</title></rect>\n", kinds[box->kind].name,
                    rfx_human_bytes(box->bytes, bytes), box->offset);
}

static void put_stage(struct rfx_run_page *page, int stage, size_t arena) {
    const struct rfx_plan *plan = page->job->plan;
    struct slot slot = slot_of(plan, stage);
    rfx_arena_use_stage(page->use, stage);
    for (int i = 0; i < page->use->n_boxes; ++i) put_box(page, &slot, &page->use->boxes[i], arena);
    rfx_html_format(&page->html,
                    "<path d=\"M%.2f %d V%d\" stroke=\"#555\" stroke-dasharray=\"3 3\"/>\n", slot.x,
                    TOP, TOP + HEIGHT);
    if (slot.width < 40) return; /* a number has room */
    rfx_html_format(&page->html, "<text x=\"%.2f\" y=\"%d\">stage %d</text>\n", slot.x + 3,
                    TOP + HEIGHT + 16, stage + 1);
}

static void put_stage_words(struct rfx_run_page *page, int stage) {
    const struct rfx_plan *plan = page->job->plan;
    const struct rfx_stage *s = &plan->stages[stage];
    char words[RFX_PLAN_TEXT];
    int target = s->spec.n_targets > 0 ? s->targets[s->spec.n_targets - 1] : s->last;
    (void)s->spec.mode->describe(&s->spec, rfx_split_label(plan->graph, target), false, words,
                                 sizeof words);
    rfx_trim_cut_character(words);
    rfx_html_raw(&page->html, "<li>");
    rfx_html_text(&page->html, words);
    rfx_html_raw(&page->html, "</li>\n");
}

static void put_legend(struct rfx_run_page *page) {
    for (int k = 0; k < RFX_ARENA_COUNT; ++k)
        rfx_html_format(&page->html,
                        "<rect x=\"%d\" y=\"6\" width=\"12\" height=\"12\" fill=\"%s\"/>"
                        "<text x=\"%d\" y=\"16\">%s</text>\n",
                        LEFT + 200 * k, kinds[k].fill, LEFT + 200 * k + 18, kinds[k].name);
}

void rfx_page_plan_picture(struct rfx_run_page *page) {
    const struct rfx_plan *plan = page->job->plan;
    size_t arena = plan->bytes.arena > 0 ? plan->bytes.arena : 1;
    char text[RFX_HUMAN_CHARS];
    rfx_html_raw(&page->html, "<h2>The plan</h2>\n<ol>\n");
    for (int s = 0; s < plan->n_stages; ++s) put_stage_words(page, s);
    rfx_html_format(&page->html, "</ol>\n<svg viewBox=\"0 0 %d %d\" id=\"plan\" role=\"img\">\n",
                    WIDTH, TOP + HEIGHT + BOTTOM);
    put_legend(page);
    for (int s = 0; s < plan->n_stages; ++s) put_stage(page, s, arena);
    rfx_html_format(&page->html,
                    "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
                    "stroke=\"#555\"/>\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n"
                    "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n</svg>\n",
                    LEFT, TOP, WIDTH - LEFT, HEIGHT, LEFT - 6, TOP + HEIGHT, LEFT - 6, TOP + 10,
                    rfx_human_bytes(plan->bytes.arena, text));
    rfx_html_raw(&page->html,
                 "<p class=\"note\">The arena, one block of memory that all maps share: its bytes "
                 "upwards, the layers of each stage across. Where boxes lie over each other a "
                 "layer writes over what its input no longer needs. The pointer on a box shows "
                 "whose it is.</p>\n");
}

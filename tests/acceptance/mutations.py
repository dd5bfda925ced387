#!/usr/bin/env python3
"""Tests that look: small mistakes are put into a copy of the tree, one after the other, and each must
turn a test red.

    mutations.py [--list] [--all] [--jobs N] [--work DIR] [NAME ...]

Without --all the tests that ought to see a mistake run first, then all, up to the first that fails;
with --all every test runs and all red ones are printed. In the end the red ones run without any
mutation, and those that are red again do not count. Fails when a mutation survives, or when its place
is not found (a pattern must match once). --list builds nothing and only looks for the places.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns("build*", ".git")

# name: (file, pattern, replacement, tests that ought to see it)
MUTATIONS = {
    "let equal pixels of earlier rows be peaks beside each other": (
        "rfexec/answers/peaks.c", r"\[at\] >= value", "[at] > value",
        "test_peaks$"),
    "count NaN in the mean of a channel": (
        "rfexec/answers/summary_file.c", r"file->pixels - entry\.channel->nan;", "file->pixels;",
        "test_summary_file$"),
    "drop what an edge of an area has moved between two units": (
        "rfexec/answers/areas.c", r"edge->rest \+= edge->step_rest;", "",
        "test_areas$"),
    "scale values before regions and points are found": (
        "tools/cli/answers.c", r"format->bits = 0;", "",
        "test_cli_points$"),
    "tell a sum of the map that comes of it": (
        "rfexec/api/step_teller.c", r"return step->kind == RFX_STEP_REDUCE_ADD \?.*?: &node->out;",
        "return &node->out;", "test_step_teller$"),
    "tell of files the wrong way round": (
        "rfexec/api/step_teller.c", r"return RFX_STEP_WORK_SPILL;", "return RFX_STEP_WORK_FETCH;",
        "test_step_teller$"),
    "tell where the run will be instead of where it is": (
        "rfexec/api/step_teller.c", r"\.done = step->unit,", ".done = step->n_units,",
        "test_step_teller$"),
    "report bytes of stages that nobody needs any more": (
        "rfexec/api/reports.c", r" && last_need\(plan, i\) >= s", "",
        "test_reports$"),
    "write what a mask leaves out": (
        "rfexec/shards/masked_run.c", r"wanted \? from\[c\] : run->fill", "from[c]",
        "test_masks$"),
    "lay the end of a mask's pixels short": (
        "rfexec/shards/mask.c", r"rfx_ceil_div\(hi \* n, of\)", "hi * n / of",
        "test_masks$"),
    "put rectangles of a mask over others": (
        "rfexec/shards/mask.c", r"grown \|= !rfx_rect_equal\(more, all\);", "",
        "test_masks$"),
    "the last of equal elements first": (
        "layers/tensor_ops/top_k.c", r"return a < b;", "return a > b;",
        "test_top_k$"),
    "leave what a bad index scatters into as it is": (
        "layers/tensor_ops/pick.c", r"for \(int64_t e = 0; outside && e < elems; e\+\+\) out\[e\] = NAN;", "",
        "test_pick$"),
    "count a georeference from the middles of pixels": (
        "rfexec/output/georeferenced.c", r"axis->shift \+ 0\.5 - axis->step / 2\.0", "axis->shift",
        "test_cli_geotiff$"),
    "turn a georeference the other way": (
        "rfexec/image/geo/georeference.c", r"orientation == 6 \|\| orientation == 7", "orientation >= 7",
        "test_georeference$"),
    "take the place of a join from the wider branch": (
        "rf_analysis/grid.c", r"b->size_px < a->size_px", "b->size_px > a->size_px",
        "test_grid$"),
    "leave in a tile what was there before": (
        "rfexec/output/tiff_write.c", r"width < tile_row \|\| rows < p->tile", "false",
        "test_tiff_write$"),
    "hang no overviews below the plane of an OME-TIFF": (
        "rfexec/output/tiff_write.c", r"k == 0 && plane\.ome", "k == 1 && plane.ome",
        "test_ome_tiff$"),
    "pack floats of an OME-TIFF as Bio-Formats does not read them": (
        "rfexec/output/tiff/tiff_fields.c", r"p->ome \? 1 : 3", "p->ome ? 3 : 3",
        "test_ome_tiff$"),
    "take a plane's rows from the channel before": (
        "rfexec/output/overviews/overviews.c", r"channel \* level->h \+ y", "channel * (level->h - 1) + y",
        "test_ome_tiff$"),
    "leave the size of pixels as it was": (
        "rfexec/image/geo/georeference.c", r"a\.x\[i\] \* geo->pixel_um\[0\]", "geo->pixel_um[0]",
        "test_georeference$"),
    "take all tiles of a COG for as long as the first": (
        "rfexec/output/tiff/cog_layout.c", r"at \+= d->bytes\[i\];", "at += d->bytes[0];",
        "test_cog_layout$"),
    "leave in a last chunk what was there before": (
        "rfexec/output/zarr/zarr_write.c", r"filled, 0, bytes - filled", "filled, 0, filled - filled",
        "test_zarr_write$"),
    "take a row of chunks for another": (
        "rfexec/image/zarr/image_zarr.c", r"chunk_row_of\[column\] != y / s->rows", "chunk_row_of[column] < 0",
        "test_(image_zarr|zarr_damage)$"),
    "follow links out of a Zarr folder": (
        "rfexec/image/zarr/zarr_folder.c", r"O_NOFOLLOW \| O_CLOEXEC;", "O_CLOEXEC;",
        "test_zarr_damage$"),
    "take a part of another Zarr folder": (
        "rfexec/shards/shard_identity.c", r"status = add_places\(state, fd, key, size, chunk, err\);", ";",
        "test_cli_zarr$"),
    "take the second of two rows for an overview": (
        "rfexec/output/overviews/overviews.c", r"\? row : level->held, row\}", "? row : row, row}",
        "test_overviews$"),
    "keep metadata of single bands": (
        "rfexec/image/geo/geo_tiff.c", r"sample != NULL && sample < tag_end", "false",
        "test_cli_geotiff$"),
    "take sums that no image adds up to": (
        "layers/kernels/exact_sum.c", r" && digit\[DIGITS - 1\] < MOST_LAST", "",
        "test_exact_sum$"),
    "take parts of other bands for the same run": (
        "rfexec/shards/shard_identity.c", r'"bands", bands\)', '"bands", json_array())',
        "test_part_files$"),
    "cut a filled-up map a row too short": (
        "rfexec/run/fit_size.c", r"rfx_ceil_div\(rows, (.*)\);", r"rows / \1;",
        "test_fit_size$"),
    "put columns of a spilled map at the row's start": (
        "rfexec/run/spill_files.c", r"width \+ rect->x0 - t->held\.x0\)", "width)",
        "test_spill_files$"),
    "cut a stream where most is read over": (
        "tiler/search/partition.c", r"p->over < points\[best\]\.over", "p->over > points[best].over",
        "test_partition$"),
    "take a narrow end for a waist": (
        "tiler/search/partition.c", r" && after > waist->cuts\[1\]", "", "test_partition$"),
    "give stages rows that do not fit": (
        "tiler/search/planner.c", r"budget = context->request->memory_bytes, peak", "budget = SIZE_MAX, peak",
        "test_planner_rows$"),
    "choose rows for the first stage alone": (
        "tiler/search/planner.c", r"if \(has_rows\(.*\)\) status = choose", "if (s == 0) status = choose",
        "test_planner_rows$"),
    "store what saves least": (
        "tiler/search/chain_stores.c", r"o->gain > best->gain", "o->gain < best->gain",
        "test_chain_stores$|test_planner_chains$"),
    "name the least of a few choices": (
        "tiler/search/candidate_list.c", r"k < 4 && best_room > 0", "false", "test_planner_chains$"),
    "keep what planning freed": (
        "layers/core/memory.c", r"\(void\)malloc_trim\(0\)", "(void)0", "test_memory$"),
    "run beside what planning freed": (
        "rfexec/run/session.c", r"rfx_memory_trim\(mem\);", "", "test_load_memory$"),
    "write a TIFF and count no library": (
        "rfexec/output/tiff/tiff_open.c", r"size_t bytes = RFX_TIFF_LIBRARY_BYTES \+ ",
        "size_t bytes = ", "test_budget$"),
    "leave out stored outputs": (
        "rfexec/run/session_run.c", r"status = give_all_stored\(session, err\);", "(void)status;",
        "test_session$"),
    "reserve less than code and libraries take": (
        "tiler/search/planner.c", r"return CODE_BYTES", "return 2 * MIB", "test_budget$"),
    "write over rows that the step still reads": (
        "tiler/modes/streamed.c", r"int64_t least = \*lag \+ .*;", "int64_t least = *lag;",
        "test_stream_slides$|test_session$"),
    "write over rows of a step that others still read": (
        "tiler/modes/streamed.c", r"return \*lag <= 0 && rfx_stream_ends_with\(.*\);", "return true;",
        "test_session$"),
    "take rows that nobody needs for rows that nobody reads": (
        "tiler/modes/stream_slides.c", r"return first_read\(graph, before, after, made, &path\) >= end;",
        "return true;", "test_stream_slides$"),
    "leave rows of the picture unread": (
        "rfexec/run/session_run.c", r"rfx_ceil_div\(rfx_rect_rows\(rect\), READ_ROWS\)",
        "rfx_rect_rows(rect) / READ_ROWS", "test_session$"),
    "put rows that lag where there is no room": (
        "tiler/plan/plan_build.c", r"= stage->nodes\[node->over\]\.ring_rows \+ node->lead;",
        "= node->lead;", "test_plan_check$"),
    "write over what a convolution reads as well": (
        "tiler/plan/plan_records.c", r"!takes\(l, node, k\)\) return false;\n    return true;",
        "false) return false;\n    return true;", "test_plan_check$|test_session$"),
    "leave sums in a row whose residual lies there": (
        "layers/graph/view_rows.h", r"int64_t y = rect\.y1 - 1, x", "int64_t y = rect.y0, x",
        "test_session$|test_conv_backend$|test_view_rows$"),
    "reduce nothing of a constant": (
        "tiler/modes/streaming.c", r" \|\| rfx_node_is_constant\(&graph->nodes\[i\]\);", ";",
        "test_streaming$"),
    "make rows of a stored map before the image comes to them": (
        "tiler/modes/streaming.c", r"if \(is_source\(stream, node\)\) hi = .*;", "",
        "test_streaming$"),
    "take a period's tiles for all alike": (
        "tiler/plan/stage.c", r"s->scale / rfx_gcd_i64\(s->scale, width\);", "1;",
        "test_stage_sweep$"),
    "forget what is known of another part": (
        "tiler/search/measurement_cache.c", r"a->group == b->group && ", "",
        "test_plan"),
    "close a spilled map's file a stage early": (
        "rfexec/run/spill_files.c", r"file->last >= stage\)", "file->last > stage)",
        "test_spill_files$|test_session$"),
    "wait for the inputs of a map that is fetched": (
        "tiler/modes/streaming.c", r"k < rfx_place_inputs\(stream->places\[node\], n\)", "k < n->n_in",
        "test_streaming$"),
    "spill where nobody allowed it": (
        "tiler/search/candidate_list.c", r"RFX_CUTS_SPILLED && !request->may_spill\)",
        "RFX_CUTS_SPILLED && request->no_inplace)", "test_planner$"),
    "windows that are not shifted down": (
        "layers/ops/window_attention.c", r"rfx_axis_map_blocks\(a->h, -a->shift_h\)",
        "rfx_axis_map_blocks(a->h, 0)", "test_influence$|test_regions|test_window_attention"),
    "a window's bias of the query's neighbour": (
        "layers/ops/window_attention.c", r"\(y - win->y0\) \* a->w \+ x - win->x0\)",
        "(y - win->y0) * a->w + x - win->pixels.x0)", "test_window_attention"),
    "any mask is a roll's": (
        "rfexec/onnx/import/onnx_windows.c", r"define HIDDEN \(-100\.0f\)",
        "define HIDDEN (-50.0f)", "test_onnx_windows"),
    "flip one pad": (
        "layers/conv/conv.c", r"a->sh, a->pads\.top\)", "a->sh, a->pads.bottom)",
        "test_op_conv$|test_reference_ops|test_analysis|test_op$"),
    "flip one pad of own kernels": (
        "layers/conv/conv_direct.c", r"r->x \* a->sw - a->pads\.left;", "r->x * a->sw - a->pads.right;",
        "test_op_conv$|test_reference_ops$"),
    "swap two channels of a panel": (
        "layers/conv/conv_direct.c", r"run\.bias \+= slab->channel;",
        "run.bias += slab->channel / RFX_CONV_PANEL % 2 ? 0 : slab->channel;",
        "test_op_conv$|test_reference_ops$"),
    "run down a column past a ring's end": (
        "layers/conv/conv_direct.c", r"return rfx_view_f32_at\(v, y \+ step, x\)",
        "return step > 0 || rfx_view_f32_at(v, y + step, x)", "test_op_conv$|test_random_tiles"),
    "one product too few": (
        "layers/kernels/generic/conv.c", r"const float \*end = w \+ k \* width; w < end;",
        "const float *end = w + (k > 99 ? k - 1 : k) * width; w < end;", "test_op_conv$"),
    "a value of another pixel": (
        "layers/kernels/generic/conv_values.h", r"stride, 3 \* stride, 5 \* stride", "stride, 3 * stride, 4 * stride",
        "test_op_conv$"),
    "forget a part of a long sum": (
        "layers/kernels/generic/conv.c", r"min_i64\(k \+ parts\.taps, k1\)",
        "k + 1", "test_op_conv$|test_conv_chain$"),
    "forget what a fixed point rounds away": (
        "layers/kernels/generic/exact.c", r"rest\[h\] = total\[h\];", "rest[h] = total[h] - total[h];",
        "test_exact_sum"),
    "another panel's width": (
        "layers/conv/conv_openblas.c", r"(panel_block\(args->graph, args->node\);)\n",
        r"\1\n    if (block.w > 1 && args->rect.x0 % 2 == 1) block.w--;\n",
        "test_op_conv_openblas|test_random_tiles_Haswell"),
    "drop one ring row": (
        "tiler/modes/streaming.c", r"turn->rows\.hi - first\)", "turn->rows.hi - first - 1)",
        "test_streaming|test_plan"),
    "skip one clamp": (
        "rf_analysis/regions.c", r"rfx_max_i64\(r\.lo, 0\)", "r.lo",
        "test_influence|test_tiling|test_curve$"),
    "the last iteration of a loop is nobody's": (
        "layers/core/team.c", r"next \+= each \+ \(s < more \? 1 : 0\);", "next += each;", "test_team"),
    "shares are nobody else's": (
        "layers/core/team.c", r"for \(int s = 0; s < team->n_shares; s\+\+\) \{\n        struct",
        "for (int s = 0; s < 1; s++) {\n        struct", "test_team"),
    "columns of parts side by side": (
        "layers/graph/units.c", r"index / grid\.down, grid\.across\)",
        "index % grid.across, grid.across)", "test_units|test_random_tiles$"),
    "swap two channels": (
        "layers/kernels/generic/elementwise.c", r"xp\[i\] \* scale\[i\] \+ shift\[i\]",
        "xp[i] * scale[c > 1 && i < 2 ? 1 - i : i] + shift[i]",
        "test_op_elementwise|test_reference_ops|test_kernels"),
    "wrong offset from a strategy": (
        "tiler/arena/greedy_packers.c", r"rfx_place_align\(end, item->alignment\) : best",
        "rfx_place_align(end / 2, item->alignment) : best", "test_placement|test_packer"),
    "rise above the second end": (
        "tiler/arena/exact_search.c", r"search->resting\[s\] == i \? search->second_end\[s\] : search->level\[s\]",
        "search->second_end[s]", "test_packer$"),
    "wrong offset from the packer": (
        "tiler/arena/exact_search.c", r"search->offsets\[i\] \* search->unit",
        "search->offsets[i] / 2 * search->unit", "test_packer"),
    "stale row in a ring": (
        "rfexec/run/session_run.c", r"int64_t y = part\.y0; y < part\.y1;",
        "int64_t y = part.y0; y < part.y1 - 1;", "test_session|test_random_tiles$|fuzz_plan"),
    "tiles of rows from row 0": (
        "layers/conv/winograd/conv_winograd_unit.c", r"w->outputs \+ w->from,", "w->outputs,",
        "test_conv_winograd"),
    "what moved tiles see": (
        "layers/conv/winograd/conv_winograd.c", r"axis == 0 \? node->attr\.conv\.tiles_from : 0",
        "0", "test_conv_winograd"),
    "tiles that rows wait for": (
        "layers/conv/winograd/conv_tile_rows.c", r"waiting\(rows, from, h\) < waiting",
        "waiting(rows, from, h) > waiting", "test_conv_tile_rows"),
    "a map that is not forgotten": (
        "tiler/plan/stage.c", r"        stored\[node\] = false;\n", "",
        "test_stage$|test_chain_stores"),
    "a map that lives until it is made again": (
        "tiler/plan/plan_records.c", r"!made_again && step > last\[i\]", "step > last[i]",
        "test_planner_chains|test_chain_stores|test_stage$"),
    "forgotten a level late": (
        "tiler/search/partition.c", r"chain->until\[i\] == level\)", "chain->until[i] + 1 == level)",
        "test_chain_stores"),
    "slides without their lag": (
        "tiler/arena/placement_slides.c", r"s->slides\[k\]\.down : s->slides\[k\]\.up",
        "s->loose[k].down : s->slides[k].up", "test_placement_slides"),
    "a filter's points with one sign": (
        "layers/kernels/generic/winograd.c", r"VECTOR_FMA\(VECTOR_ALL\(-B\), g1, even_b\)",
        "VECTOR_FMA(VECTOR_ALL(B), g1, even_b)", "test_conv_winograd"),
    "two maps over one": (
        "tiler/plan/plan_records.c", r"slides\[k\]\.after == after\) return true",
        "slides[k].after == after) return false", "test_plan_slides$"),
    "one room for all levels": (
        "tiler/search/candidate_list.c", r"if \(c->beside\[s\] > beside\[level\]\) beside\[level\] = c->beside\[s\];",
        "(void)level, (void)beside;", "test_planner_chains$"),
    "rows over those that their own node still reads": (
        "tiler/modes/streamed.c", r"rfx_stream_reads\(graph, before, after\) \? shape->rows\[after\]\.per_step : 0", "0",
        "test_plan_check|test_streaming|test_session$|test_stream_slides"),
    "the last rows over those still read": (
        "tiler/modes/stream_slides.c", r"    if \(!rfx_stream_reads\(graph, before, after\)\) .*\n", "",
        "test_stream_slides"),
    "a label with the end of its line": (
        "tools/cli/classes.c", r'p\[strcspn\(p, "\\r"\)\]', "p[strlen(p)]", "fuzz_labels"),
    "two roundings for one": (
        "layers/kernels/generic/dense.c", r"sum\[j\] = MATH_FMA\(xv, w\[j\], sum\[j\]\)",
        "sum[j] += xv * w[j]", "test_kernel_table|test_kernels"),
    "a maximum as the instruction has it": (
        "layers/kernels/generic/vector_math.h", r"x = x < lo \? lo : x;", "x = lo > x || x == 0.0f ? lo : x;",
        "test_kernels|test_kernel_table"),
    "forget a thread's state": (
        "layers/graph/reduction.c", r"int64_t p = 1; p < parts; p\+\+", "int64_t p = 1; p + 1 < parts; p++",
        "test_reduction$|test_op|test_reference_ops|test_random_tiles$"),
    "another cubic": (
        "layers/ops/resize_filter.c", r"\(\(a \* d - 5\.0f \* a\) \* d \+ 8\.0f \* a\)",
        "((a * d - 5.0f * a) * d + 8.5f * a)", "test_op_resize_filter$"),
    "the middle where the border was meant": (
        "layers/ops/resize.c", r"return \(float\)axis->in / 2\.0f \* \(1\.0f - adjusted\);",
        "return 0.0f * adjusted;", "test_op_resize_filter$|test_reference_ops$"),
    "equal is greater": (
        "layers/kernels/generic/elementwise.c", r"ZIP\(u > v \? 1\.0f : 0\.0f\);",
        "ZIP(u >= v ? 1.0f : 0.0f);", "test_kernel_logic$"),
    "the low half of squares": (
        "layers/kernels/generic/exact.c", r" +rests\[h\] \+= \(wide_int\)small;\n", "",
        "test_exact_sum$|test_op_norm$"),
    "a norm of the channels before": (
        "layers/kernels/generic/channel_norm.c", r"if \(pixels->kept\) \{\n",
        "if (pixels->kept || r->c > 128) {\n", "test_kernel_table$|test_op_norm$"),
    "a run of channels that ends late": (
        "layers/ops/channel_select.c", r"map\[i \+ n\] == map\[i\] \+ n \* step", "map[i + n] >= map[i]",
        "test_op_spatial$|test_reference_ops$"),
    "a window over the right border": (
        "layers/ops/pool.c", r"x \+ reach >= in->w", "x + reach > in->w",
        "test_op_spatial$|test_reference_ops$"),
    "channels that fill no vector": (
        "layers/kernels/generic/pool.c", r"window\(r, ch, 1, true, maximum\)", "(void)0", "test_pool_kernel$"),
    "a kept row too few": (
        "rfexec/run/session_run.c", r"for \(int64_t y = part\.y0; y < part\.y1; y\+\+\)",
        "for (int64_t y = part.y0; y < part.y1 - (index > 0); y++)",
        "test_cli_plan$"),
    "a period too many": (
        "tiler/modes/streaming.c", r"skip == INT64_MAX \? 0 : skip - 1;",
        "skip == INT64_MAX ? 0 : skip + 3;", "test_plan_counts$|test_streaming$"),
    "bytes of dense convolutions as any others": (
        "tiler/cost/cost.c", r"dense \? RFX_COST_AHEAD_BYTE : RFX_COST_DRAM_BYTE", "RFX_COST_DRAM_BYTE",
        "test_cost$"),
    "dense outputs are read before they are written": (
        "tiler/cost/cost.c", r"m->nodes\[i\]\.dense \? bytes : 2\.0 \* bytes", "2.0 * bytes", "test_cost$"),
}


def mutated(tree, file, pattern, replacement):
    """(path, its text, the text with the mistake)."""
    path = tree / file
    if not path.is_file():
        sys.exit(f"{file}: there is no such file; mutations.py needs another place")
    text = path.read_text()
    changed, count = re.subn(pattern, replacement, text)
    if count != 1:
        sys.exit(f"{file}: the pattern {pattern!r} matches {count} times; mutations.py needs another")
    return path, text, changed


def mutate(tree, file, pattern, replacement):
    """Changes the file; returns what undoes it."""
    path, text, changed = mutated(tree, file, pattern, replacement)
    path.write_text(changed)
    return lambda: path.write_text(text)


def command(tree, *words):
    return subprocess.run(words, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)


def build(tree, jobs):
    done = command(tree, "cmake", "--build", "--preset", "release", "--parallel", jobs)
    if done.returncode != 0:
        print(done.stdout[-3000:])
        sys.exit("a mutated tree does not build: mutations.py needs another place")


def red_tests(tree, jobs, selection, stop):
    """Names of the tests that fail."""
    # places_of_mutations misses the place of whatever is put in.
    words = ["ctest", "--preset", "release", "-j", jobs, "-E", "^places_of_mutations$"]
    words += ["-R", selection] if selection else []
    words += ["--stop-on-failure"] if stop else []
    output = command(tree, *words).stdout
    if not re.search(r"tests passed", output):
        sys.exit(f"ctest ran no tests: {output[-1000:]}")
    return re.findall(r"^\s*\d+ - (\S+) \((?!Not Run)", output, re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MUTATIONS))
    parser.add_argument("--list", action="store_true", help="only look for the places")
    parser.add_argument("--all", action="store_true", help="all red tests, not the first")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--work", help="keep the copy here, to build faster the next time")
    args = parser.parse_args()
    names = args.names or list(MUTATIONS)
    if args.list:
        for name in names:
            mutated(TOP, *MUTATIONS[name][:3])
            print(f"{name}: {MUTATIONS[name][0]}")
        return 0
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        tree = pathlib.Path(args.work or scratch) / "tree"
        shutil.copytree(TOP, tree, ignore=LEFT_OUT, dirs_exist_ok=True)
        if command(tree, "cmake", "--preset", "release").returncode != 0:
            sys.exit("the copy cannot be configured")
        build(tree, args.jobs)
        for name in names:
            file, pattern, replacement, selection = MUTATIONS[name]
            undo = mutate(tree, file, pattern, replacement)
            try:
                build(tree, args.jobs)
                red = [] if args.all else red_tests(tree, args.jobs, selection, False)
                found[name] = red or red_tests(tree, args.jobs, None, not args.all)
            finally:
                undo()
        build(tree, args.jobs)
        every = sorted({test for red in found.values() for test in red})
        anyway = red_tests(tree, args.jobs, f"^({'|'.join(every)})$", False) if every else []
    if anyway:
        print(f"red without a mutation, not counted: {', '.join(anyway)}")
    survivors = 0
    for name, red in found.items():
        counted = [test for test in red if test not in anyway]
        print(f"{name} ({MUTATIONS[name][0]}): {', '.join(counted) or 'SURVIVES'}")
        survivors += not counted
    print(f"{len(names) - survivors} passed, {survivors} failed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())

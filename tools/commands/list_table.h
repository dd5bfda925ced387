/* run --list --table: one CSV file of what is found in all images of a list. Its rows are those of
 * the images' CSV files, with the path of the image in a first column "image".
 *
 * The rows of an image are read from its file when that file is complete, so a list that goes on
 * with --resume gives the same table. */
#ifndef RFX_TOOLS_COMMANDS_LIST_TABLE_H
#define RFX_TOOLS_COMMANDS_LIST_TABLE_H

#include "rfexec/answers/answer_text.h"

enum { RFX_LIST_TABLE_COLUMNS = 512, RFX_LIST_TABLE_PIECE = 16384 };

struct rfx_list_table { /* all zero: none */
    struct rfx_answer_text text;
    char columns[RFX_LIST_TABLE_COLUMNS]; /* first line of the first file; "": no file was added */
    size_t columns_length;
    char piece[RFX_LIST_TABLE_PIECE]; /* of a file that is read */
    int64_t lines;                    /* rows, without the first line */
};

/* Returns the memory of an open table. */
size_t rfx_list_table_bytes(void);

/* Opens the file under a temporary name. Statuses of rfx_output_file_open. Free the table with
 * rfx_list_table_free, also after a failure. */
RFX_NODISCARD enum rfx_status rfx_list_table_open(struct rfx_memory *mem, const char *path,
                                                  struct rfx_list_table *table,
                                                  struct rfx_error *err);

/* Appends the rows of an image's CSV file. IO: the file cannot be read. MALFORMED: its last line
 * does not end, or it has other columns than the files before. After a failure the table must not
 * be committed. */
RFX_NODISCARD enum rfx_status rfx_list_table_add(struct rfx_list_table *table, const char *image,
                                                 const char *path, struct rfx_error *err);

/* Gives the file its name. */
RFX_NODISCARD enum rfx_status rfx_list_table_commit(struct rfx_list_table *table,
                                                    struct rfx_error *err);

/* Frees. Without a commit there is no file. */
void rfx_list_table_free(struct rfx_list_table *table);
#endif

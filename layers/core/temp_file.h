/* Files without a name for what is read again: nothing is left of them however the process ends. */
#ifndef RFX_LAYERS_CORE_TEMP_FILE_H
#define RFX_LAYERS_CORE_TEMP_FILE_H

/* The folder for them: `folder`, or else that of TMPDIR, or /var/tmp. */
const char *rfx_temp_folder(const char *folder);

/* A file of no bytes in the folder, to be read and written by descriptor.h; -1 with errno. */
int rfx_temp_file_open(const char *folder);
#endif

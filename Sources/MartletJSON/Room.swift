// The room is built up file by file.

//! Windows: rings of frames in memory, one writer and many cursors

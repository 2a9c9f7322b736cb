//! Durable segments of frames: index, recovery, retention

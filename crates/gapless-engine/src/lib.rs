//! Services on a stream: dispatch, replies, timers, snapshots

//! The sequencer: one total order from many publishers

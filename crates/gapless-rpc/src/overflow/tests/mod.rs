//! Tests of the queue as a whole.

mod damage;
mod endings;
mod limits;
mod order;
mod support;

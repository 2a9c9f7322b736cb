//! Serving a route: workers that pull requests of other processes, and the handler that answers them.
//!
//! | module | what lives there |
//! |---|---|
//! | [`workers`] | [`Workers`]: the threads and tasks of one copy of a route |
//! | [`answering`] | [`Answering`]: from the bytes of a request to the bytes of its reply |
//! | [`handler`] | [`Handler`]: the application's function, plain or `async` |
//! | [`interceptor`] | [`ServerInterceptor`](interceptor::ServerInterceptor): what looks at the calls of a handler |
//! | [`counters`] | [`CopyCounters`]: what a copy counts |

pub(crate) mod answering;
pub(crate) mod counters;
pub(crate) mod handler;
pub(crate) mod interceptor;
pub(crate) mod workers;

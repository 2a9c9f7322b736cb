//! Serving a route: workers that pull requests of other processes, and the handler that answers them.
//!
//! | module | what lives there |
//! |---|---|
//! | [`workers`] | [`Workers`]: the threads and tasks of one instance of a route |
//! | [`answering`] | [`Answering`]: from an encoded request to its encoded reply |
//! | [`handler`] | [`Handler`]: the application's function, plain or `async` |
//! | [`interceptor`] | [`ServerInterceptor`](interceptor::ServerInterceptor): a hook around the handler |
//! | [`counters`] | [`CopyCounters`]: statistics of an instance |

pub(crate) mod answering;
pub(crate) mod counters;
pub(crate) mod handler;
pub(crate) mod interceptor;
pub(crate) mod workers;

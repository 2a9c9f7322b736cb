//! Serving a route: workers that pull requests of other processes, and the handler that answers them. The registry
//! connects the processes.

pub(crate) mod attachments;
mod cancellation_watchers;
pub(crate) mod counters;
pub(crate) mod interceptor;
pub(crate) mod puller;
pub(crate) mod request_processor;
pub(crate) mod workers;

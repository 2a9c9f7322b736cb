//! `Domain`: opening, closing and statistics.

use super::counter_files::{self, CallReading, DomainReading, InstanceReading};
use super::membership::{DomainMembership, DomainShared};
use super::route_builder::RouteBuilder;
use super::route_tables::{RouteTables, TableOptions};
use crate::caller::{Caller, CallerOptions};
use crate::context::default_process_name;
use crate::error::RpcError;
use crate::message::Message;
use crate::registry::{DomainDirectory, DomainLocation, IoThread};
use crate::server::attachments::ServedRoutes;
use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::process_mark::ProcessMark;
use gapless_log::call_table::{PAYLOAD_LENGTH_MAX, SLOTS_MAX};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options of a domain, the same for all routes that this process calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainOptions {
    /// Name shown to other processes, at most 128 bytes. Default: the valid variable `GAPLESS_INSTANCE` of a supervisor
    /// (such as `calculator.1`), else the program's name.
    pub process_name: Option<String>,
    /// Requests in flight at one time for each called route: a power of two, 1 to 4,096; default 64.
    pub slots: u32,
    /// Longest request or reply, bytes; up to 16 MiB, the default. Headers have separate room; memory is allocated as
    /// it is used.
    pub payload_length_max: usize,
    /// Group whose processes may call the routes served here; the domain then needs a path of its own.
    pub group: Option<u32>,
    /// Delay from the first call or look until this process watches for others; default 0. A process that ends earlier
    /// spares the removal of the watch, 10 to 20 ms in the kernel: `gapless call` uses 50 ms.
    pub watch_after: Duration,
}

impl Default for DomainOptions {
    fn default() -> Self {
        Self {
            process_name: None,
            slots: 64,
            payload_length_max: PAYLOAD_LENGTH_MAX,
            group: None,
            watch_after: Duration::ZERO,
        }
    }
}

impl DomainOptions {
    fn check(&self) -> Result<(), RpcError> {
        if !self.slots.is_power_of_two() || self.slots > SLOTS_MAX {
            let reason = format!("{} was found; a power of two from 1 to {SLOTS_MAX} is expected", self.slots);
            return Err(RpcError::Option { option: "slots", reason });
        }
        if self.payload_length_max > PAYLOAD_LENGTH_MAX {
            let reason = format!("{} was found; up to {PAYLOAD_LENGTH_MAX} are possible", self.payload_length_max);
            return Err(RpcError::Option { option: "payload_length_max", reason });
        }
        Ok(())
    }
}

/// A process's membership of a domain; it ends with the last clone. In a forked child the handles are closed, and the
/// child must open the domain again.
#[derive(Clone)]
pub struct Domain {
    pub(super) shared: Arc<DomainShared>,
}

impl Domain {
    /// Makes a domain private to this process: values move, without encoding.
    #[must_use]
    pub fn in_process(name: impl Into<String>) -> Self {
        let (process_name, started_ns, opened_by) = (default_process_name(), monotonic_ns(), ProcessMark::current());
        let (name, local) = (name.into(), Arc::default());
        Self { shared: Arc::new(DomainShared { name, process_name, started_ns, local, machine: None, opened_by }) }
    }

    /// Opens the domain `name` of this user, or creates it: in `$XDG_RUNTIME_DIR/gapless`, else in `/tmp/gapless-USER`.
    ///
    /// # Errors
    /// The name is invalid, options are out of range, others may write to the directory, or the machine has no threads
    /// or descriptors left.
    pub fn open(name: &str, options: DomainOptions) -> Result<Self, RpcError> {
        Self::open_at(name.to_owned(), &DomainLocation::Named(name.to_owned()), options)
    }

    /// Like [`Domain::open`], in the given directory. It is created if its parent exists.
    ///
    /// # Errors
    /// Like [`Domain::open`].
    pub fn open_directory(path: impl Into<PathBuf>, options: DomainOptions) -> Result<Self, RpcError> {
        let path = path.into();
        Self::open_at(path.display().to_string(), &DomainLocation::Path(path), options)
    }

    fn open_at(name: String, place: &DomainLocation, options: DomainOptions) -> Result<Self, RpcError> {
        options.check()?;
        let directory = DomainDirectory::open(place, options.group)?;
        let path = directory.path().to_owned();
        counter_files::sweep(&path)?;
        let process_name = options.process_name.unwrap_or_else(default_process_name);
        let tables = TableOptions { slots: options.slots, payload_length_max: options.payload_length_max };
        let (calling, serving) =
            (RouteTables::new(tables, path.clone(), &process_name), Arc::new(ServedRoutes::default()));
        let sides = (Arc::<ServedRoutes>::clone(&serving), Arc::<RouteTables>::clone(&calling));
        let thread = IoThread::start(directory, &process_name, sides.0, sides.1)?;
        let io = thread.handle();
        io.delay_watch(options.watch_after);
        let started_ns = io.started_ns();
        calling.set_io(io.clone());
        let machine = Some(DomainMembership { directory: path, io, calling, serving, thread });
        let opened_by = ProcessMark::current();
        let shared =
            Arc::new(DomainShared { name, process_name, started_ns, local: Arc::default(), machine, opened_by });
        let domain = Arc::downgrade(&shared);
        shared.machine.iter().for_each(|machine| machine.serving.set_domain(domain.clone()));
        Ok(Self { shared })
    }

    /// Name of the domain.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Starts the description of a route that this process serves.
    pub fn serve(&self, route: &str) -> RouteBuilder {
        RouteBuilder::new(Arc::clone(&self.shared), route)
    }

    /// Makes a caller of a route.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn caller<Request: Message, Reply: Message>(&self, route: &str) -> Result<Caller<Request, Reply>, RpcError> {
        self.caller_with(route, CallerOptions::default())
    }

    /// Makes a caller with the given options.
    ///
    /// # Errors
    /// Like [`Domain::caller`], and an overflow queue that cannot be created.
    pub fn caller_with<Request: Message, Reply: Message>(
        &self,
        route: &str,
        options: CallerOptions,
    ) -> Result<Caller<Request, Reply>, RpcError> {
        self.shared.caller(route, options)
    }

    /// Statistics of the living instances in this process and others, read without their help; unreadable ones are left
    /// out. Values of others are up to a quarter of a second old, or older while one is stopped or the machine is
    /// overloaded. A domain of one process has none.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn instance_statistics(&self) -> Result<Vec<InstanceReading>, RpcError> {
        self.counted().map(|counted| counted.instances)
    }

    /// Statistics of the living processes' calls to other processes, this process included; otherwise as
    /// [`Domain::instance_statistics`].
    ///
    /// # Errors
    /// Like [`Domain::instance_statistics`].
    pub fn caller_statistics(&self) -> Result<Vec<CallReading>, RpcError> {
        self.counted().map(|counted| counted.calls)
    }

    fn counted(&self) -> Result<DomainReading, RpcError> {
        self.shared.check_process()?;
        let Some(machine) = &self.shared.machine else { return Ok(DomainReading::default()) };
        machine.calling.show_counters();
        counter_files::read_domain(&machine.directory)
    }

    /// Directory of the domain of this name, for a program that does not open it.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn directory_of(name: &str) -> Result<PathBuf, RpcError> {
        Ok(DomainDirectory::path_of_name(name)?)
    }
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

//! [`Domain`]: opened, closed, asked for its routes.

use super::calling::{Calling, TableOptions};
use super::counter_files::{self, CallReading, CopyReading};
use super::membership::{Machine, Shared};
use super::route_builder::RouteBuilder;
use super::serving::Serving;
use crate::caller::{Caller, CallerOptions};
use crate::clock::monotonic_ns;
use crate::error::RpcError;
use crate::message::Message;
use crate::registry::{DomainDirectory, IoThread, Place, RouteState};
use crate::route_name::HIDDEN_PREFIX;
use gapless_log::call_table::{PAYLOAD_LENGTH_MAX, SLOTS_MAX};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options of a domain, the same for all routes that this process calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainOptions {
    /// The name that other processes see; without one the program's.
    pub process_name: Option<String>,
    /// Requests in flight at one time for each route that is called: a power of two, 1 to 4,096. 64 without a word.
    pub slots: u32,
    /// Longest request or reply with its headers, bytes; up to 16 MiB, which it is without a word. Memory is taken as it is used.
    pub payload_length_max: usize,
    /// The group whose processes may call what is served here. The domain needs a path of its own then.
    pub group: Option<u32>,
}

impl Default for DomainOptions {
    fn default() -> Self {
        Self { process_name: None, slots: 64, payload_length_max: PAYLOAD_LENGTH_MAX, group: None }
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

/// A domain as this process has it. Clones are the same; when the last one is dropped, the process leaves it.
#[derive(Clone)]
pub struct Domain {
    pub(super) shared: Arc<Shared>,
}

/// A route that a copy of another process serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRoute {
    /// Its name.
    pub route: String,
    /// `open`, `suspended` or `draining`.
    pub state: &'static str,
    /// The copy's process id.
    pub process_id: u32,
    /// The name that the process gave itself.
    pub process_name: String,
    /// The application's version of the route.
    pub version: String,
    /// Whatever else the application says of it.
    pub metadata: Vec<(String, String)>,
    /// The types of request and reply, such as `Order v2`; a first version is not said.
    pub types: (String, String),
    /// Threads or tasks that serve it in that copy.
    pub workers: u32,
}

impl KnownRoute {
    /// Whether it is no application's route: where a process receives notices.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.route.starts_with(HIDDEN_PREFIX)
    }
}

impl Domain {
    /// A domain of this process alone: values move, and nothing is encoded.
    #[must_use]
    pub fn in_process(name: impl Into<String>) -> Self {
        Self {
            shared: Arc::new(Shared {
                name: name.into(),
                started_ns: monotonic_ns(),
                local: Arc::default(),
                machine: None,
            }),
        }
    }

    /// Opens the domain `name` of this user, or makes it: in `$XDG_RUNTIME_DIR/gapless`, else in `/tmp/gapless-USER`.
    ///
    /// # Errors
    /// A name that no domain can have, options out of range, a directory that others may write to, a machine without threads or
    /// descriptors.
    pub fn open(name: &str, options: DomainOptions) -> Result<Self, RpcError> {
        Self::open_at(name.to_owned(), &Place::Named(name.to_owned()), options)
    }

    /// As [`Domain::open`], in a directory of one's own, which is made if only it itself is missing.
    ///
    /// # Errors
    /// As [`Domain::open`].
    pub fn open_directory(path: impl Into<PathBuf>, options: DomainOptions) -> Result<Self, RpcError> {
        let path = path.into();
        Self::open_at(path.display().to_string(), &Place::Path(path), options)
    }

    fn open_at(name: String, place: &Place, options: DomainOptions) -> Result<Self, RpcError> {
        options.check()?;
        let directory = DomainDirectory::open(place, options.group)?;
        let path = directory.path().to_owned();
        counter_files::sweep(&path)?;
        let process_name = options.process_name.unwrap_or_else(program_name);
        let tables = TableOptions { slots: options.slots, payload_length_max: options.payload_length_max };
        let (calling, serving) = (Calling::new(tables, path.clone()), Arc::new(Serving::default()));
        let thread = IoThread::start(
            directory,
            &process_name,
            Arc::<Serving>::clone(&serving),
            Arc::<Calling>::clone(&calling),
        )?;
        let io = thread.handle();
        let started_ns = io.started_ns();
        calling.set_io(io.clone());
        let machine = Some(Machine { directory: path, io, calling, serving, thread });
        let shared = Arc::new(Shared { name, started_ns, local: Arc::default(), machine });
        let domain = Arc::downgrade(&shared);
        shared.machine.iter().for_each(|machine| machine.serving.set_domain(domain.clone()));
        Ok(Self { shared })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Begins to describe a route that this process serves.
    pub fn serve(&self, route: &str) -> RouteBuilder {
        RouteBuilder::new(Arc::clone(&self.shared), route)
    }

    /// A caller of a route.
    ///
    /// # Errors
    /// A name that no route can have.
    pub fn caller<Request: Message, Reply: Message>(&self, route: &str) -> Result<Caller<Request, Reply>, RpcError> {
        self.caller_with(route, CallerOptions::default())
    }

    /// A caller with options of its own.
    ///
    /// # Errors
    /// As [`Domain::caller`], and an overflow that cannot be had.
    pub fn caller_with<Request: Message, Reply: Message>(
        &self,
        route: &str,
        options: CallerOptions,
    ) -> Result<Caller<Request, Reply>, RpcError> {
        self.shared.caller(route, options)
    }

    /// What the living copies count, of this process and others; without them. Of a domain of one process there are none.
    ///
    /// # Errors
    /// A directory that cannot be listed.
    pub fn counters(&self) -> Result<Vec<CopyReading>, RpcError> {
        let machine = self.shared.machine.as_ref();
        machine.map_or_else(|| Ok(Vec::new()), |machine| counter_files::read_counters(&machine.directory))
    }

    /// What the living processes count of their calls to others, this one and the others; without them. Of a domain of one process there
    /// is nothing.
    ///
    /// # Errors
    /// A directory that cannot be listed.
    pub fn calls(&self) -> Result<Vec<CallReading>, RpcError> {
        let machine = self.shared.machine.as_ref();
        machine.map_or_else(|| Ok(Vec::new()), |machine| counter_files::read_calls(&machine.directory))
    }

    /// Where [`Domain::open`] finds or makes the domain of this name, for those who only look.
    ///
    /// # Errors
    /// A name that no domain can have.
    pub fn directory_of(name: &str) -> Result<PathBuf, RpcError> {
        DomainDirectory::path_of_name(name)
    }

    /// The routes that other processes serve, as they are known after `timeout` at most.
    ///
    /// # Errors
    /// A directory that cannot be watched.
    pub fn routes(&self, timeout: Duration) -> Result<Vec<KnownRoute>, RpcError> {
        let Some(machine) = &self.shared.machine else { return Ok(Vec::new()) };
        machine.io.discover()?;
        machine.calling.wait_until_discovered(timeout);
        let known = machine.calling.routes().into_iter().map(|(process, route)| KnownRoute {
            route: route.name,
            state: match route.state {
                RouteState::Open => "open",
                RouteState::Suspended => "suspended",
                RouteState::Draining | RouteState::Gone => "draining",
            },
            process_id: process.process_id,
            process_name: process.name.clone(),
            version: route.version,
            metadata: route.metadata,
            types: (route.request.to_string(), route.reply.to_string()),
            workers: route.workers,
        });
        let mut known: Vec<_> = known.collect();
        known.sort_by(|a, b| (&a.route, a.process_id).cmp(&(&b.route, b.process_id)));
        Ok(known)
    }
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// The name of the program's file.
fn program_name() -> String {
    let program = std::env::args_os().next().map(PathBuf::from);
    let name = program.as_deref().and_then(std::path::Path::file_name).unwrap_or_default().to_string_lossy();
    name.chars().take(32).collect()
}

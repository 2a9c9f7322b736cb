//! Agents, thread plans, idle strategies, affinity, clocks and counters.
//!
//! An [`Agent`] is one stage with one non-blocking `poll`. A thread runs a group of agents in a
//! duty cycle: read the [`Clock`] once, poll each agent, and if nobody had work, idle by the
//! thread's [`IdleStrategy`]. Which agents share a thread is a [`ThreadPlan`], not the agents'
//! business; the simulator polls the same agents through [`AgentGroup`] under a [`VirtualTime`].
//!
//! | module | what lives there |
//! |---|---|
//! | [`thread_group`] | [`ThreadGroup`]: the threads of a whole plan |
//! | [`assignment`] | [`ThreadAssignment`]: a plan's threads before they run, and their wakers |
//! | [`mod@plan`] | [`plan()`](plan::plan): agents to threads, threads to cores |
//! | [`thread`] | [`AgentThread`]: the duty cycle on a thread of its own |
//! | [`group`] | [`AgentGroup`]: agents polled in order, with or without a thread |
//! | [`failure`] | [`AgentFailure`], and the [`FailureSlot`] that threads share |
//! | [`idle`] | [`IdleStrategy`]: what a thread does when there is nothing to do |
//! | [`wake`] | [`Waker`]: an eventfd and a parked flag |
//! | [`cpu_mask`] | [`CpuMask`]: parsing, checking, pinning |
//! | [`clock`] | [`Clock`]: system, time stamp counter or virtual; the wall clock is slewed |
//! | [`agent`] | [`Agent`], [`Now`] |
//! | [`counters`] | [`Counters`] in a mapped file or written by a [`CountersWriter`], [`CountersReader`] for another process |
//! | [`park_flag`], [`latch`], [`atomic_word`] | the two ordering arguments, generic over their atomics |
//! | [`mod@block_on`] | drives a future to its end on this thread |
//! | [`deadlines`] | [`Deadlines`](deadlines::Deadlines): what is told when its time is over, and the thread that tells it |
//! | [`timer_wheel`] | things with a deadline each |
//! | [`time_buckets`] | times in buckets that counters count, and their quantiles |
//! | [`pauses`] | [`Pauses`]: how long a spinning thread was kept from running |
//! | [`wake_fd`] | eventfds that wake another process's thread |
//! | [`foreign`] | the application's functions, whose panics are caught |
//! | [`process_mark`] | [`ProcessMark`](process_mark::ProcessMark): whether this is the process that made something, or a child of it |
//! | [`proc_folder`] | whether `/proc` has the processes of this process namespace |
//! | [`fault`] | crash points and mutants, for tests |
//! | [`file_lock`] | locks of files, and whether one is held |
//! | [`private_folder`] | folders of this process's user alone |
//! | [`checked_file`] | files by their path, opened and read as [`Folder`](folder::Folder) does it, with a limit |
//! | [`socket_file`] | who may connect to a socket that was just bound |
//! | `folder_tree` | removing a folder with all that it holds |
//! | [`folder`] | [`Folder`](folder::Folder): files in a folder that another user may write into |
//! | [`regular_file`] | files that a program reads by name |
//! | [`shortage`] | whether an error means that this process or its machine lacks something |
//! | [`wait_notices`] | [`WaitNotices`](wait_notices::WaitNotices): when one who waits says for whom |
//! | [`lost_mappings`] | a file that was made shorter under its mapping ends the program with the file's name |
//! | [`random`] | random bytes of the operating system |
//! | [`progress`] | [`Progress`](progress::Progress): a number that only grows, and the threads that wait for it |
//! | [`monotonic`] | the clock of deadlines |
//! | [`error`] | [`Error`] |

#![deny(unsafe_op_in_unsafe_fn)]

pub mod agent;
pub mod assignment;
pub mod atomic_word;
pub mod block_on;
pub mod checked_file;
pub mod clock;
pub mod counters;
pub mod cpu_mask;
pub mod deadlines;
pub mod error;
pub mod failure;
pub mod fault;
pub mod file_lock;
pub mod folder;
mod folder_tree;
pub mod foreign;
pub mod group;
pub mod idle;
pub mod latch;
pub mod lost_mappings;
pub mod monotonic;
pub mod park_flag;
pub mod pauses;
pub mod plan;
pub mod private_folder;
pub mod proc_folder;
pub mod process_mark;
pub mod progress;
pub mod random;
pub mod regular_file;
pub mod shortage;
pub mod socket_file;
pub mod thread;
pub mod thread_group;
pub mod time_buckets;
pub mod timer_wheel;
pub mod wait_notices;
pub mod wake;
pub mod wake_fd;

pub use agent::{Agent, AgentError, Now};
pub use assignment::ThreadAssignment;
pub use clock::{Clock, ClockKind, VirtualTime};
pub use counters::{Counter, CounterView, Counters, CountersReader, CountersWriter, SharedCounter, WrittenCounters};
pub use cpu_mask::{CpuMask, PinWarning};
pub use error::Error;
pub use failure::{AgentFailure, FailureSlot};
pub use group::AgentGroup;
pub use idle::{Idle, IdleAction, IdleStrategy};
pub use pauses::{PauseTracker, Pauses};
pub use plan::{AgentSpec, OptimizeFor, PlanKind, PlannedThread, ThreadPlan, plan};
pub use thread::{AgentThread, ThreadSpec};
pub use thread_group::ThreadGroup;
pub use wake::{WakeFd, Waker};

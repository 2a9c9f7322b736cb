//! Agents, thread plans, idle strategies, affinity, clocks and counters.
//!
//! An [`Agent`] is one stage with one non-blocking `poll`. A thread runs a group of agents in a duty cycle: read the
//! [`Clock`] once, poll each agent, and if none had work, idle by the thread's [`IdleStrategy`]. A [`ThreadPlan`], not
//! the agents, decides which agents share a thread. The simulator polls the same agents through [`AgentGroup`] under a
//! [`VirtualTime`].
//!
//! | module | what lives there |
//! |---|---|
//! | [`thread_group`] | [`ThreadGroup`]: the threads of a whole plan |
//! | [`assignment`] | [`ThreadAssignment`]: a plan's threads before they run, and their wakers |
//! | [`mod@plan`] | [`plan()`](plan::plan): agents to threads, threads to cores |
//! | [`thread`] | [`AgentThread`]: the duty cycle on a thread of its own |
//! | [`group`] | [`AgentGroup`]: agents polled in order, with or without a thread |
//! | [`failure`] | [`AgentFailure`], and the [`FailureSlot`] shared by threads |
//! | [`idle`] | [`IdleStrategy`]: behaviour of a thread without work |
//! | [`wake`] | [`Waker`]: an eventfd and a parked flag |
//! | [`cpu_mask`] | [`CpuMask`]: parsing, checking, pinning |
//! | [`clock`] | [`Clock`]: system, time stamp counter or virtual; the wall clock is slewed |
//! | [`agent`] | [`Agent`], [`Now`] |
//! | [`counters`] | [`Counters`] in a mapped file or written by a [`CountersWriter`], [`CountersReader`] for another process |
//! | [`park_flag`], [`latch`], [`announcements`], [`atomic_word`] | the three ordering arguments, generic over their atomics |
//! | [`mod@block_on`] | running a future to completion on this thread |
//! | [`deadlines`] | [`Deadlines`](deadlines::Deadlines): callbacks at deadlines, and the thread that runs them |
//! | [`timer_wheel`] | a hashed timer wheel |
//! | [`time_buckets`] | histograms of durations in counters, and their quantiles |
//! | [`pauses`] | [`Pauses`]: times that a spinning thread was kept from running |
//! | [`wake_fd`] | eventfds that wake a thread of another process |
//! | [`foreign`] | running application functions and catching their panics |
//! | [`process_mark`] | [`ProcessMark`](process_mark::ProcessMark): detection of a forked child |
//! | [`proc_folder`] | whether `/proc` has the processes of this process namespace |
//! | [`fault`] | crash points and mutants, for tests |
//! | [`file_lock`] | file locks, and whether one is held |
//! | [`private_folder`] | folders accessible only to this process's user |
//! | [`checked_file`] | files by path, opened and read like by [`Folder`](folder::Folder), with a limit |
//! | [`socket_file`] | permissions of a newly bound socket |
//! | `folder_tree` | removing a folder with its contents |
//! | [`folder`] | [`Folder`](folder::Folder): files in a folder that another user may write into |
//! | [`regular_file`] | regular files named by a user |
//! | [`shortage`] | whether an error means that this process or its machine is out of a resource |
//! | [`wait_notices`] | [`WaitNotices`](wait_notices::WaitNotices): times of messages about a long wait |
//! | [`lost_mappings`] | ending the program with the name of a file that was truncated under its mapping |
//! | [`random`] | random bytes of the operating system |
//! | [`progress`] | [`ProgressCounter`](progress::ProgressCounter): a number that only grows, and the threads waiting for it |
//! | [`monotonic`] | the clock of deadlines |
//! | [`error`] | [`Error`] |

#![deny(unsafe_op_in_unsafe_fn)]

pub mod agent;
pub mod announcements;
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

//! `OfferedRelay`: a route that this process serves as bytes, for instances in other domains.

use super::membership::DomainShared;
use super::opening::Domain;
use super::route_builder::info_of;
use super::route_control::{RemoteControl, RouteControl};
use crate::caller::routes::TypeKey;
use crate::caller::{Caller, CallerOptions, Reach, RelayedBytes};
use crate::error::RpcError;
use crate::message::described::TypeDescription;
use crate::registry::RouteDescription;
use crate::route_counters::Side;
use crate::route_name;
use crate::server::attachments::ServedRemote;
use crate::server::counters::InstanceCounters;
use crate::server::puller::ServedCallers;
use gapless_agent::wake_fd;
use gapless_log::Bell;
use std::sync::{Arc, Mutex, PoisonError};

const TYPE_NAME_LENGTH_MAX: usize = 1024;

/// A route offered as bytes, until this is dropped.
pub(crate) struct OfferedRelay {
    domain: Arc<DomainShared>,
    control: Arc<RouteControl>,
    served: Arc<ServedCallers>,
    token: u64,
    counters: Arc<InstanceCounters>,
    description: Mutex<RouteDescription>,
}

impl Domain {
    pub(crate) fn offer_relay(&self, description: RouteDescription) -> Result<OfferedRelay, RpcError> {
        let domain = &self.shared;
        domain.check_process()?;
        route_name::check_own(&description.name)?;
        let Some(machine) = &domain.machine else {
            return Err(RpcError::Option { option: "relay", reason: "this domain has no other processes".to_owned() });
        };
        let route = description.name.clone();
        let counters = Arc::new(InstanceCounters::create(&route, &machine.calling.shown(&route, Side::Instance))?);
        let bell = Bell::create()?;
        let system = RpcError::system::<std::io::Error>;
        let passed_bell = bell.region().fd().try_clone_to_owned().map_err(system("passing a bell on"))?;
        let eventfd = wake_fd::create().map_err(RpcError::system("making an eventfd"))?;
        let passed_eventfd = eventfd.try_clone().map_err(system("passing an eventfd on"))?;
        let served = Arc::new(ServedCallers::new(bell, eventfd));
        served.set_relay(!description.stands_for.is_empty());
        let control = RouteControl::new(route.clone(), Arc::clone(&domain.local));
        let any_type = || TypeKey::described(TypeDescription::default());
        let remote = ServedRemote {
            served: Arc::clone(&served),
            states: Arc::clone(&control) as _,
            request: any_type(),
            reply: any_type(),
            // Written by the instance in the other domain, as agreed with its caller there.
            reply_version: |_| Some(0),
            bell: Arc::new(passed_bell),
            eventfd: Arc::new(passed_eventfd),
        };
        if !machine.serving.insert(&route, Arc::new(remote)) {
            return Err(RpcError::Served { route });
        }
        let (io, serving) = (machine.io.clone(), Arc::downgrade(&machine.serving));
        control.set_remote(RemoteControl { served: Arc::clone(&served), io: io.clone(), serving });
        let offered = machine.calling.register_served(&served).map_err(system("watching a route's eventfd"));
        let offered = offered.and_then(|token| {
            let announced = io.announce(description.clone());
            announced.inspect_err(|_| machine.calling.unregister_served(token))?;
            Ok(token)
        });
        let token = offered.inspect_err(|_| control.leave_others())?;
        let (domain, description) = (Arc::clone(domain), Mutex::new(description));
        Ok(OfferedRelay { domain, control, served, token, counters, description })
    }

    pub(crate) fn caller_of_described(
        &self,
        route: &str,
        request: TypeDescription,
        reply: TypeDescription,
    ) -> Result<Caller<RelayedBytes, Vec<u8>>, RpcError> {
        for described in [&request, &reply] {
            if described.name.len() > TYPE_NAME_LENGTH_MAX {
                let length = described.name.len();
                let reason = format!("a type's name has {length} bytes; at most {TYPE_NAME_LENGTH_MAX} are allowed");
                return Err(RpcError::Option { option: "type", reason });
            }
        }
        let options = CallerOptions { reach: Reach::OtherProcesses, ..CallerOptions::default() };
        Ok(self.shared.caller(route, options)?.of_described(request, reply))
    }
}

impl OfferedRelay {
    pub(crate) fn route(&self) -> &str {
        self.control.route()
    }

    pub(crate) const fn served(&self) -> &Arc<ServedCallers> {
        &self.served
    }

    pub(crate) const fn counters(&self) -> &Arc<InstanceCounters> {
        &self.counters
    }

    pub(crate) fn is_served(&self) -> bool {
        self.is_here() && self.control.is_served()
    }

    pub(crate) fn is_here(&self) -> bool {
        self.domain.opened_by.is_here()
    }

    pub(crate) fn info(&self) -> String {
        info_of(&self.description.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A change that cannot be announced is not made.
    pub(crate) fn change(&self, change: impl FnOnce(&mut RouteDescription)) -> Result<(), RpcError> {
        self.domain.check_process()?;
        // Locked until announced, so that announcements keep the order of changes.
        let mut description = self.description.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = description.clone();
        change(&mut changed);
        if changed == *description {
            return Ok(());
        }
        // Set first where it accepts more, so that no request is offered to an instance that ignores it.
        let is_relay = !changed.stands_for.is_empty();
        if !is_relay {
            self.served.set_relay(false);
        }
        let told = self.control.announce(changed.clone());
        self.served.set_relay(if told.is_ok() { is_relay } else { !description.stands_for.is_empty() });
        told?;
        *description = changed;
        Ok(())
    }

    pub(crate) fn drain(&self) {
        if self.is_here() {
            self.control.drain();
        }
    }
}

impl Drop for OfferedRelay {
    fn drop(&mut self) {
        if !self.is_here() {
            // Resources belong to the parent and stay untouched.
            return std::mem::forget((
                Arc::clone(&self.served),
                Arc::clone(&self.control),
                Arc::clone(&self.counters),
                Arc::clone(&self.domain),
            ));
        }
        self.control.leave_others();
        if let Some(machine) = &self.domain.machine {
            machine.calling.unregister_served(self.token);
        }
    }
}

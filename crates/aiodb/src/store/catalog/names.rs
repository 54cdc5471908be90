//! Tables that get other names.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Catalog, Current, Generation, TableSlot};
use crate::format::settings::Settings;
use crate::planted::{self, Bug};
use crate::sync::RwLockWriteGuard;
use crate::sync::atomic::Ordering;

impl Catalog {
    /// From here on a checkpoint gives generations these names, by their ids. The caller holds `changing` until it has called
    /// [`Catalog::end_naming`].
    pub(crate) fn begin_naming(&self, names: BTreeMap<u32, String>) {
        self.write().naming = names;
    }

    /// Gives the generations their names or, if the names do not `count`, forgets about them. Handles follow the name: one on a name that
    /// another table has got is a handle on that.
    pub(crate) fn end_naming(&self, count: bool) {
        let mut tables = self.write();
        let naming = std::mem::take(&mut tables.naming);
        if !count {
            return;
        }
        self.namings.fetch_add(1, Ordering::SeqCst);
        let is_free = |slot: &&Arc<TableSlot>| {
            let is_renamed = Self::id(slot).is_some_and(|id| naming.contains_key(&id));
            is_renamed && !naming.values().any(|name| *name == slot.name)
        };
        let free: Vec<_> = tables.by_name.values().filter(is_free).cloned().collect();
        let mut changed = Vec::new();
        for slot in free {
            tables.by_name.remove(&slot.name);
            let gone = Current::Gone(slot.with_settings(Settings::clone));
            changed.push((slot, gone));
        }
        for (id, name) in naming {
            let generation = Arc::clone(tables.by_id.get(&id).expect("no table goes while it gets a name"));
            match tables.by_name.get(&name) {
                Some(slot) => changed.push((Arc::clone(slot), Current::Generation(generation))),
                None => self.add_slot(&mut tables, &name, generation),
            }
        }
        let (slots, present): (Vec<_>, Vec<_>) = changed.into_iter().unzip();
        let held = slots.iter().map(|slot| slot.hold());
        let set = |(mut held, present): (RwLockWriteGuard<'_, Current>, Current)| *held = present;
        if planted::is_on(Bug::SwapNameByName) {
            held.zip(present).for_each(set);
        } else {
            // All at once, also for a thread that asks one handle after the other.
            held.collect::<Vec<_>>().into_iter().zip(present).for_each(set);
        }
        self.namings.fetch_add(1, Ordering::SeqCst);
    }

    /// How often tables have begun to get other names, and how often they have got them; odd while they get them.
    pub(crate) fn namings(&self) -> u64 {
        self.namings.load(Ordering::SeqCst)
    }

    /// Whether what was found by names since this was [`Catalog::namings`] belongs to one moment.
    pub(crate) fn are_names_of(&self, namings: u64) -> bool {
        namings.is_multiple_of(2) && self.namings() == namings || planted::is_on(Bug::BatchTornBySwap)
    }

    /// All tables by the names that a checkpoint gives them.
    pub(crate) fn listed(&self) -> BTreeMap<String, Arc<Generation>> {
        let tables = self.read();
        let one = |slot: &Arc<TableSlot>| {
            let generation = slot.generation().ok()?;
            let name = tables.naming.get(&generation.id).unwrap_or(&slot.name);
            Some((name.clone(), generation))
        };
        tables.by_name.values().filter_map(one).collect()
    }
}

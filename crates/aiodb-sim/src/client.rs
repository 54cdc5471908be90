//! Clients that keep gets in flight while others write.

use crate::model::{Cell, Effect, Held};
use crate::process::{Client, Get};
use crate::script::{DEPTH, key_bytes};
use crate::state::{Run, Violation};

impl Run<'_> {
    /// A client starts a get.
    pub(crate) fn submit(&mut self, client: usize, table: usize, key: usize) -> Result<(), Violation> {
        let creation = self.model.creations(table);
        let exists = self.model.exists(table);
        if self.client(client).table != (table, creation) {
            // A reader that is dropped with gets in flight gives everything back.
            *self.client(client) = Client::default();
        }
        if self.client(client).reader.is_none() {
            match self.table(table).and_then(|table| table.reader(DEPTH)) {
                Ok(reader) => {
                    let client = self.client(client);
                    (client.reader, client.table) = (Some(reader), (table, creation));
                }
                Err(error) => {
                    let accepted = if exists { vec![Cell::Damaged] } else { Vec::new() };
                    return self.check_answer(Err(error), &accepted, "making a reader");
                }
            }
        }
        if self.client(client).reader.as_ref().is_some_and(|reader| !reader.has_room()) {
            self.poll(client)?;
        }
        if self.device.has_crashed() {
            return Ok(());
        }
        let accepted: Vec<Held> = self.model.held(table, key).into_iter().cloned().collect();
        let from = self.look_at_clock();
        let client = self.client(client);
        let token = client.next_token;
        client.next_token += 1;
        let Some(reader) = &mut client.reader else { return Ok(()) };
        match reader.submit(&key_bytes(key), token) {
            Ok(()) => {
                client.in_flight.insert(token, Get { key, accepted, from });
                Ok(())
            }
            Err(error) => {
                let accepted: Vec<Cell> = accepted.iter().flat_map(|held| held.cells(from)).collect();
                self.check_answer(Err(error), &accepted, "submitting a get")
            }
        }
    }

    /// A client takes an answer.
    pub(crate) fn poll(&mut self, client: usize) -> Result<(), Violation> {
        let client = self.client(client);
        let Some(reader) = &mut client.reader else { return Ok(()) };
        let polled = reader.poll().map(|got| got.map(|got| (got.token, got.value.map(Cell::of))));
        match polled {
            Ok(Some((token, found))) => {
                let get = client.in_flight.remove(&token).expect("a token comes back once");
                let accepted = self.cells(&get.accepted, get.from);
                self.check_answer(found, &accepted, "a get in flight")
            }
            Ok(None) if client.in_flight.is_empty() => Ok(()),
            Ok(None) => Err("gets in flight were never answered".into()),
            Err(error) => {
                *client = Client::default();
                self.check_answer(Err(error), &[Cell::Damaged], "polling")
            }
        }
    }

    /// Gets in flight may see what was there when they were submitted, or anything since: called when the model has it.
    pub(crate) fn clients_see(&mut self, effects: &[Effect]) {
        let Some(life) = &mut self.life else { return };
        for client in &mut life.clients {
            for get in client.in_flight.values_mut() {
                let here = (client.table.0, get.key);
                for effect in effects {
                    match effect {
                        // A group is seen as a whole.
                        Effect::Set(table, key, _) | Effect::Merge(table, key, _) if (*table, *key) == here => {
                            get.accepted.extend(self.model.held(*table, *key).cloned());
                        }
                        Effect::Truncate(table) | Effect::Drop(table) if *table == here.0 => {
                            get.accepted.push(Held::default());
                        }
                        // It may be looked up again.
                        Effect::Swap(one, other) if [*one, *other].contains(&here.0) => {
                            get.accepted.extend(self.model.held(here.0, here.1).cloned());
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn client(&mut self, client: usize) -> &mut Client {
        &mut self.life.as_mut().expect("the store is open").clients[client]
    }
}

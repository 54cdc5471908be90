//! Commands on hashes.

use super::Generator;

const FIELDS: [&str; 6] = ["f", "g", "h", "", "long field with spaces", "f\0"];

impl Generator {
    fn field(&mut self) -> String {
        self.pick(&FIELDS).into()
    }

    /// A command with one right answer.
    pub(super) fn hash_command(&mut self) -> Vec<String> {
        match self.below(14) {
            0..3 => vec![self.pick(&["hset", "hmset"]).into(), self.key(), self.field(), self.value()],
            3 => vec!["hset".into(), self.key(), self.field(), self.value(), self.field(), self.value()],
            4 => vec!["hsetnx".into(), self.key(), self.field(), self.value()],
            5 | 6 => vec!["hget".into(), self.key(), self.field()],
            7 => vec!["hmget".into(), self.key(), self.field(), self.field(), self.field()],
            8 => vec!["hdel".into(), self.key(), self.field(), self.field()],
            9 => vec![self.pick(&["hexists", "hstrlen"]).into(), self.key(), self.field()],
            10 => vec!["hlen".into(), self.key()],
            11 => vec!["hincrby".into(), self.key(), self.field(), self.integer()],
            12 => vec!["hincrbyfloat".into(), self.key(), self.field(), self.value()],
            _ => {
                let name = ["hset", "hmset", "hget", "hdel", "hscan", "hrandfield", "hincrby"];
                let arguments = [self.key(), self.field(), self.value(), self.value()];
                let count = self.below(5);
                let name = self.pick(&name).to_string();
                // One that draws would draw something else from each server.
                let count = if name == "hrandfield" && count == 1 { 0 } else { count };
                [name].into_iter().chain(arguments.into_iter().take(count)).collect()
            }
        }
    }

    /// A command whose answer has no order.
    pub(super) fn hash_question(&mut self) -> Vec<String> {
        match self.below(5) {
            0..3 => vec![self.pick(&["hgetall", "hkeys", "hvals"]).into(), self.key()],
            3 => {
                let mut words = vec!["hscan".into(), self.key(), "0".into()];
                match self.below(4) {
                    0 => words.extend(["match".into(), self.pick(&["*", "f*", "?", "x"]).into()]),
                    1 => words.extend(["count".into(), self.small()]),
                    2 => words.extend([self.pick(&["type", "nope", "match", "count"]).into()]),
                    _ => {}
                }
                words
            }
            _ => {
                let mut words = vec!["hrandfield".into(), self.key(), self.pick(&["100", "0", "x", "30"]).into()];
                match self.below(3) {
                    0 => words.push("withvalues".into()),
                    1 => words.push("WITHVALUES".into()),
                    _ => {}
                }
                words
            }
        }
    }
}

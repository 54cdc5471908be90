//! Random commands: mostly right ones on a few keys, so that they meet, and some that are wrong.

use fastrand::Rng;

/// A command.
pub type Arguments = Vec<Vec<u8>>;

/// When keys expire that expire at a fixed time: years from now, so that two servers tell the same.
const FAR: [&str; 3] = ["4102444800", "4102444801", "5000000000"];
const FAR_MS: [&str; 3] = ["4102444800000", "4102444800500", "5000000000499"];

/// All keys.
pub const KEYS: [&str; 7] = ["a", "b", "c", "d", "", "key with spaces", "k\0"];

mod hashes;
mod lists;
mod sets;
mod sorted_sets;

/// A generator with a seed.
pub struct Generator {
    random: Rng,
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator { random: Rng::with_seed(seed) }
    }

    /// Which of so many things is next.
    pub fn below(&mut self, number: usize) -> usize {
        self.random.usize(..number)
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn key(&mut self) -> String {
        self.pick(&KEYS).into()
    }

    fn value(&mut self) -> String {
        let plain = [
            "0",
            "1",
            "-1",
            "10",
            "9223372036854775807",
            "-9223372036854775808",
            "007",
            "+1",
            " 1",
            "1.5",
            "3.14",
            "5e3",
            "abc",
            "",
            "hello world",
            "inf",
            "nan",
            "-0",
            "1e400",
            "0.1",
            "99999999999999999999",
        ];
        match self.below(8) {
            0 => "x".repeat(self.below(40)),
            _ => self.pick(&plain).into(),
        }
    }

    fn integer(&mut self) -> String {
        self.pick(&[
            "0",
            "1",
            "-1",
            "5",
            "-7",
            "100",
            "9223372036854775807",
            "-9223372036854775808",
            "x",
            "1.0",
            "",
            "-0",
        ])
        .into()
    }

    fn small(&mut self) -> String {
        self.pick(&["0", "1", "2", "5", "-1", "-2", "-5", "100", "-100", "x"]).into()
    }

    /// A time from now on that is far away, gone, or none.
    fn duration(&mut self) -> String {
        self.pick(&["1000", "2000", "100000", "0", "-1", "x", "9223372036854775807", "9223372036854775"]).into()
    }

    fn in_any_case(&mut self, word: &str) -> String {
        if self.random.bool() { word.to_uppercase() } else { word.into() }
    }

    fn set_options(&mut self, is_set: bool) -> Vec<String> {
        let mut options = Vec::new();
        while self.below(3) == 0 {
            let choices = ["nx", "xx", "get", "keepttl", "persist", "ex", "px", "exat", "pxat", "foo"];
            let option = if is_set { self.pick(&choices) } else { self.pick(&choices[3..]) };
            options.push(self.in_any_case(option));
            match option {
                "ex" | "px" => options.push(self.duration()),
                "exat" => options.push(if self.below(4) == 0 { "1".into() } else { self.pick(&FAR).into() }),
                "pxat" => options.push(if self.below(4) == 0 { "1".into() } else { self.pick(&FAR_MS).into() }),
                _ => {}
            }
        }
        options
    }

    /// A command that answers the same whenever it runs, and in which order keys are kept.
    pub fn command(&mut self) -> Arguments {
        let words = match self.below(9) {
            0 => self.hash_command(),
            1 => self.set_command(),
            2 => self.list_command(),
            3 | 4 => self.sorted_set_command(),
            _ => self.other_command(),
        };
        self.bytes(words)
    }

    fn other_command(&mut self) -> Vec<String> {
        match self.below(42) {
            0..4 => vec!["set".into(), self.key(), self.value()],
            4 | 5 => [vec!["set".into(), self.key(), self.value()], self.set_options(true)].concat(),
            6..8 => vec!["get".into(), self.key()],
            8 => vec!["mget".into(), self.key(), self.key(), self.key()],
            9 => vec!["mset".into(), self.key(), self.value(), self.key(), self.value()],
            10 => vec!["msetnx".into(), self.key(), self.value(), self.key(), self.value()],
            11 => vec!["getset".into(), self.key(), self.value()],
            12 => vec!["getdel".into(), self.key()],
            13 => [vec!["getex".into(), self.key()], self.set_options(false)].concat(),
            14 => vec![self.pick(&["setex", "psetex"]).into(), self.key(), self.duration(), self.value()],
            15 => vec!["setnx".into(), self.key(), self.value()],
            16 | 17 => vec!["append".into(), self.key(), self.value()],
            18 => vec!["strlen".into(), self.key()],
            19 => vec![self.pick(&["getrange", "substr"]).into(), self.key(), self.small(), self.small()],
            20 => vec!["setrange".into(), self.key(), self.small(), self.value()],
            21 | 22 => vec![self.pick(&["incr", "decr"]).into(), self.key()],
            23 | 24 => vec![self.pick(&["incrby", "decrby"]).into(), self.key(), self.integer()],
            25 | 26 => vec!["incrbyfloat".into(), self.key(), self.value()],
            27 => vec![self.pick(&["del", "unlink", "exists", "touch"]).into(), self.key(), self.key()],
            28 => vec!["type".into(), self.key()],
            29 => {
                vec!["expireat".into(), self.key(), self.pick(&FAR).into(), self.pick(&["nx", "xx", "gt", "lt"]).into()]
            }
            30 => vec!["pexpireat".into(), self.key(), self.pick(&FAR_MS).into()],
            31 => vec![self.pick(&["expire", "pexpire", "expireat"]).into(), self.key(), "-1".into()],
            32 => vec!["persist".into(), self.key()],
            33 | 34 => vec![self.pick(&["rename", "renamenx"]).into(), self.key(), self.key()],
            35 => [vec!["copy".into(), self.key(), self.key()], self.copy_options()].concat(),
            36 => vec!["strlen".into(), self.key()],
            37 => vec!["expire".into(), self.key(), self.duration(), self.pick(&["nx", "xx", "nope"]).into()],
            38 => vec![self.pick(&["ping", "echo"]).into(), self.value()],
            39 if self.below(10) == 0 => vec![self.pick(&["flushdb", "flushall"]).into()],
            39 => vec!["select".into(), self.pick(&["0", "0", "1", "99", "x", "-1", "99999999999"]).into()],
            40 => vec![self.pick(&["get", "set", "mset", "client", "expire", "nope", "command"]).into(), self.value()],
            _ => vec![self.pick(&["multi", "exec", "discard", "unwatch", "watch", "ping"]).into()],
        }
    }

    fn copy_options(&mut self) -> Vec<String> {
        match self.below(5) {
            0 => vec!["replace".into()],
            1 => vec!["db".into(), self.pick(&["0", "1", "99", "x", "99999999999"]).into()],
            2 => vec!["DB".into(), "1".into(), "REPLACE".into()],
            3 => vec!["db".into()],
            _ => Vec::new(),
        }
    }

    /// A command whose answer needs a closer look: times, what has no order, and how many keys there are.
    pub fn question(&mut self) -> Arguments {
        let words = match self.below(13) {
            4 => vec!["dbsize".into()],
            5..7 => self.hash_question(),
            7..10 => self.set_question(),
            10.. => self.sorted_set_question(),
            0 | 1 => vec![self.pick(&["ttl", "pttl", "expiretime", "pexpiretime"]).into(), self.key()],
            2 => vec!["keys".into(), self.pick(&["*", "[a-c]", "k*", "?", "[^a]", "\\a", "[", "key*s"]).into()],
            _ => vec!["randomkey".into()],
        };
        self.bytes(words)
    }

    /// A key to be watched.
    pub fn watch(&mut self) -> Arguments {
        let words = vec!["watch".into(), self.key()];
        self.bytes(words)
    }

    fn bytes(&mut self, words: Vec<String>) -> Arguments {
        let mut arguments: Arguments = words.into_iter().map(String::into_bytes).collect();
        if self.random.bool() {
            arguments[0].make_ascii_uppercase();
        }
        arguments
    }
}

use aiodb::io::memory::memory_bytes;

use super::memory::usual_cache_bytes;
use super::*;

fn file(text: &str) -> Layer {
    toml::from_str(text).unwrap()
}

#[test]
fn earlier_layers_count_before_later_ones() {
    let flags = Layer { port: Some(1), ..Layer::default() };
    let variables = [("AIODB_SERVE_PORT", "2"), ("AIODB_SERVE_BIND", "::1, 127.0.0.1"), ("HOME", "/root")];
    let variables = variables.map(|(name, value)| (name.to_string(), value.to_string()));
    let environment = Layer::from_environment(variables.into_iter()).unwrap();
    let config =
        Config::of_layers([flags, environment, file("port = 3\nmaxclients = 5\nprotected-mode = false")]).unwrap();
    assert_eq!((config.port, config.maxclients, config.protected_mode), (1, 5, false));
    assert_eq!(config.bind.len(), 2);
    assert_eq!(config.databases, 16);
}

#[test]
fn memory_sizes_the_cache_unless_that_has_a_size_of_its_own() {
    let sizes = |layers: &[&str]| {
        let config = Config::of_layers(layers.iter().map(|text| file(text))).unwrap();
        (config.division().unwrap().server_bytes, config.cache_bytes)
    };
    assert_eq!(sizes(&[""]), (None, usual_cache_bytes(memory_bytes())));
    assert_eq!(sizes(&["maxmemory = \"1GB\""]), (Some(1 << 30), 256 << 20));
    assert_eq!(sizes(&["maxmemory = \"400m\""]), (Some(400_000_000), 100_000_000));
    assert_eq!(sizes(&["maxmemory = \"268435456\""]), (Some(256 << 20), 64 << 20));
    assert_eq!(sizes(&["maxmemory = \"1gb\"", "cache-bytes = 5"]), (Some(1 << 30), 5));
}

/// As if the server had been started with it.
#[test]
fn another_maxmemory_sizes_the_cache_that_nobody_has_sized() {
    let divided = |layers: &[&str], maxmemory: &str| {
        let division = Config::of_layers(layers.iter().map(|text| file(text))).unwrap().division_of(maxmemory).unwrap();
        (division.server_bytes, division.cache_bytes, division.engine_bytes)
    };
    let usual = usual_cache_bytes(memory_bytes());
    assert_eq!(divided(&[""], "1gb"), (Some(1 << 30), 256 << 20, Some((1024 - 192 - 128) << 20)));
    assert_eq!(divided(&["maxmemory = \"1gb\""], "0"), (None, usual, None));
    assert_eq!(divided(&["cache-bytes = 5"], "1gb").1, 5);
    let config = Config::of_layers([]).unwrap();
    for wrong in ["", "255mb", "-1", "1gbb"] {
        assert!(config.division_of(wrong).unwrap_err().contains("at least 256mb"), "{wrong}");
    }
}

#[test]
fn more_than_the_machine_has_is_a_warning() {
    let division = Config::of_layers([file("maxmemory = \"1gb\"")]).unwrap().division().unwrap();
    assert_eq!(division.warning(1 << 30), None);
    let warning = division.warning(512 << 20).unwrap();
    assert!(warning.contains("1024 MiB") && warning.contains("512 MiB"), "{warning}");
    assert_eq!(Config::of_layers([]).unwrap().division().unwrap().warning(1), None);
}

#[test]
fn the_engine_has_what_caches_and_connections_leave() {
    let engine_bytes = |layers: &[&str]| {
        let config = Config::of_layers(layers.iter().map(|text| file(text))).unwrap();
        config.division().unwrap().engine_bytes
    };
    assert_eq!(engine_bytes(&[""]), None, "the engine decides");
    assert_eq!(engine_bytes(&["maxmemory = \"1gb\""]), Some((1024 - 192 - 128) << 20));
    assert_eq!(engine_bytes(&["maxmemory = \"1gb\"", "cache-bytes = 0"]), Some((1024 - 128) << 20));
    assert_eq!(engine_bytes(&["maxmemory = \"1gb\"", "cache-bytes = 9999999999"]), Some(256 << 20));
}

#[test]
fn wrong_settings_are_named() {
    let variable = |name: &str, value: &str| {
        let variables = std::iter::once((format!("{ENVIRONMENT_PREFIX}{name}"), value.to_string()));
        Layer::from_environment(variables).unwrap_err().to_string()
    };
    assert!(variable("PORT", "70000").contains("AIODB_SERVE_PORT"));
    assert!(variable("PROT", "1").contains("no such setting"));
    assert!(toml::from_str::<Layer>("prot = 1").unwrap_err().to_string().contains("prot"));
    for (text, setting) in [
        ("durability = \"interval:0\"", "durability"),
        ("durability = \"always\"", "durability"),
        ("databases = 0", "databases"),
        ("bind = []", "bind"),
        ("maxclients = 0", "maxclients"),
        ("maxmemory = \"255mb\"", "maxmemory"),
        ("maxmemory = \"1 gb\"", "maxmemory"),
        ("maxmemory = \"99999999999gb\"", "maxmemory"),
    ] {
        assert!(Config::of_layers([file(text)]).unwrap_err().to_string().contains(setting), "{text}");
    }
}

#[test]
fn what_is_printed_can_be_read() {
    let config = Config { requirepass: "secret".into(), ..Config::default() };
    let printed = config.print();
    assert!(!printed.contains("secret"));
    let layer: Layer = toml::from_str(&printed).unwrap();
    assert_eq!(Config::of_layers([layer]).unwrap(), Config { requirepass: "(hidden)".into(), ..config });
}

#[test]
fn the_cache_has_a_part_of_the_memory() {
    let of = usual_cache_bytes;
    assert_eq!([256 << 20, 4 << 30, 64 << 30].map(of), [32 << 20, 512 << 20, 1 << 30]);
}

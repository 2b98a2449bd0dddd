// SPDX-License-Identifier: Apache-2.0
// Keeps entries in its own Vec and HashMap, whose code is compiled into it. grows MIB: up to so
// much. Prints "holds BYTES at grows.rs:LINE" every MiB.
use std::collections::HashMap;

struct Session {
    entries: Vec<Vec<u8>>,
    names: HashMap<usize, String>,
}

impl Session {
    #[inline(never)]
    fn remember(&mut self, n: usize) -> u32 {
        self.entries.push(vec![1u8; 1 << 17]); let line = line!();
        self.names.insert(n, format!("entry {}", n));
        line
    }
}

fn main() {
    let most: usize = std::env::args().nth(1).and_then(|mib| mib.parse().ok()).unwrap_or(1 << 20);
    let mut session = Session { entries: Vec::new(), names: HashMap::new() };
    for n in 0..most * 8 {
        let line = session.remember(n);
        if n % 8 == 7 {
            println!("holds {} at grows.rs:{}", session.entries.len() << 17, line);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    // what is kept to the end is not freed before it
    std::mem::forget(session);
}

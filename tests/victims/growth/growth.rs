// SPDX-License-Identifier: Apache-2.0
//! growth_rs NAME [SECONDS]: one program of programs.txt. A leak keeps 20 MB a second; the line
//! that allocates what is kept ends with a comment that names the program.
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

const BLOCK: usize = 2000;
const EACH: usize = 100;

// Each request also allocates something that it frees.
fn serve(seconds: f64, mut request: impl FnMut(usize)) {
    let mut number = 0;
    for _ in 0..(seconds * 80.0) as usize {
        let scratch: Vec<Vec<u8>> = (0..50).map(|_| vec![1; 3000]).collect();
        for _ in 0..EACH {
            request(number);
            number += 1;
        }
        drop(scratch);
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds = arguments.get(2).map_or(8.0, |text| text.parse().unwrap());
    match arguments[1].as_str() {
        "boxes_leaked" => serve(seconds, |_| {
            let text: &'static mut [u8; BLOCK] = Box::leak(Box::new([1; BLOCK])); // leak: boxes_leaked
            std::hint::black_box(text);
        }),
        "users_by_number" => {
            let mut users: HashMap<usize, Vec<u8>> = HashMap::new();
            serve(seconds, |number| {
                users.insert(number, vec![2; BLOCK]); // leak: users_by_number
            });
            std::process::exit(0);
        }
        "window_of_rows" => {
            let mut rows: VecDeque<Vec<u8>> = VecDeque::new();
            serve(seconds, |_| {
                rows.push_back(vec![3; BLOCK]);
                if rows.len() > 10000 {
                    rows.pop_front();
                }
            });
        }
        "rows_of_one_batch" => {
            let rows: Vec<Vec<u8>> = (0..100000).map(|_| vec![4; BLOCK]).collect();
            println!("{}", rows.len());
        }
        _ => std::process::exit(2),
    }
}

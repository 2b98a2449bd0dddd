// SPDX-License-Identifier: Apache-2.0
// Grows WHAT KEEP CREATE: creates so many MiB, of the heap or of direct buffers, and keeps the last
// KEEP MiB. A heap that is full ends the growth, not the program. Prints "heap LEAST MOST" every
// MiB, what the heap has in use and what it has committed, and "direct BYTES".
import java.nio.ByteBuffer;
import java.util.ArrayDeque;

public class Grows {
    static final ArrayDeque<Object> sessions = new ArrayDeque<>();
    static long direct;

    static void remember(String what, int keep) {
        if (what.equals("direct")) {
            ByteBuffer buffer = ByteBuffer.allocateDirect(1 << 20);
            for (int i = 0; i < 1 << 20; i += 4096) buffer.put(i, (byte) 1);
            direct += 1 << 20;
            sessions.add(buffer);
        } else {
            sessions.add(new byte[16][1 << 16]);
        }
        if (sessions.size() > keep) sessions.remove();
    }

    public static void main(String[] words) throws Exception {
        for (int n = 0; n < Integer.parseInt(words[2]); n++) {
            try {
                remember(words[0], Integer.parseInt(words[1]));
            } catch (OutOfMemoryError full) {
                n--;
                sessions.remove();
                words[1] = String.valueOf(sessions.size());
            }
            Runtime runtime = Runtime.getRuntime();
            System.out.println("heap " + (runtime.totalMemory() - runtime.freeMemory()) + " " + runtime.totalMemory());
            System.out.println("direct " + direct);
            System.out.flush();
            Thread.sleep(2);
        }
    }
}

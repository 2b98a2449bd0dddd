// SPDX-License-Identifier: Apache-2.0
// Growth NAME [SECONDS]: one program of programs.txt; a leak keeps 20 MB a second. Direct buffers
// are blocks of malloc.
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.zip.Inflater;

public class Growth {
    static double seconds = 8;
    static final ArrayDeque<Object> kept = new ArrayDeque<>();

    static void serve(Runnable request) throws InterruptedException {
        for (int left = (int) (seconds * 80); left > 0; left--) {
            for (int i = 0; i < 10; i++)
                request.run();
            Thread.sleep(10);
        }
    }

    static void keepBuffer() {
        kept.add(ByteBuffer.allocateDirect(20000));
    }

    static void keepInflater() {
        for (int i = 0; i < 3; i++)
            kept.add(new Inflater());
    }

    static final ByteBuffer[] pool = new ByteBuffer[1500];
    static int next;

    static void usePool() {
        if (pool[next] == null)
            pool[next] = ByteBuffer.allocateDirect(40000);
        next = (next + 1) % pool.length;
    }

    public static void main(String[] args) throws InterruptedException {
        if (args.length > 1)
            seconds = Double.parseDouble(args[1]);
        switch (args[0]) {
        case "direct_buffers_kept": serve(Growth::keepBuffer); break;
        case "inflaters_kept": serve(Growth::keepInflater); break;
        case "pool_of_direct_buffers": serve(Growth::usePool); break;
        case "buffers_of_one_batch":
            for (int i = 0; i < 5000; i++)
                keepBuffer();
            break;
        default: System.exit(2);
        }
    }
}

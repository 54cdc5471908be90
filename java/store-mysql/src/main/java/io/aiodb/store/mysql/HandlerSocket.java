package io.aiodb.store.mysql;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A connection with MariaDB's plugin HandlerSocket, which reads rows of InnoDB by their primary keys without SQL. Requests
 * and answers are lines of fields with tabs between them. Belongs to one thread at a time.
 */
final class HandlerSocket implements AutoCloseable {
    /** Bytes below this are written as a {@link #MARK} and another byte. */
    private static final int FIRST_PLAIN = 0x10;

    private static final int MARK = 0x01;
    private static final int SHIFT = 0x40;

    /** A field of this byte alone is none. */
    private static final int NULL = 0x00;

    private static final int COME_BYTES = 16 << 10;
    private static final int USUAL_FIELD_BYTES = 1 << 10;

    private final String database;
    private final Socket socket;
    private final InputStream in;

    /** What has come and was not looked at yet: the bytes from {@code at} to {@code end}. */
    private final byte[] come = new byte[COME_BYTES];

    private int at;
    private int end;

    /** The numbers under which indexes of tables were opened. */
    private final Map<String, Integer> indexes = new HashMap<>();

    /** An answer that says no. */
    static final class Refused extends IOException {
        private static final long serialVersionUID = 1;

        Refused(String message) {
            super(message);
        }
    }

    HandlerSocket(MysqlSettings settings) throws IOException {
        database = settings.database();
        int millis = (int) Math.min(Integer.MAX_VALUE, settings.timeout().toMillis());
        socket = new Socket();
        try {
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(millis);
            socket.connect(new InetSocketAddress(settings.host(), settings.directPort()), millis);
            in = socket.getInputStream();
            if (!settings.directSecret().isEmpty()) {
                ask("A\t1\t", settings.directSecret().getBytes(StandardCharsets.UTF_8));
            }
        } catch (IOException failure) {
            socket.close();
            throw failure;
        }
    }

    /**
     * The columns of the row with a key; null if there is none.
     *
     * @param columns their names, with commas between them; the same for a table each time
     */
    List<byte[]> find(String table, String columns, byte[] key) throws IOException {
        Integer index = indexes.get(table);
        if (index == null) {
            index = indexes.size() + 1;
            ask("P\t" + index + "\t" + database + "\t" + table + "\tPRIMARY\t" + columns, new byte[0]);
            indexes.put(table, index);
        }
        List<byte[]> fields = ask(index + "\t=\t1\t", key);
        return fields.isEmpty() ? null : fields;
    }

    /** Sends a line, and answers with the fields behind the code and the number of columns. */
    private List<byte[]> ask(String before, byte[] field) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream(before.length() + field.length + 1);
        line.writeBytes(before.getBytes(StandardCharsets.UTF_8));
        for (byte each : field) {
            int plain = each & 0xff;
            if (plain < FIRST_PLAIN) {
                line.write(MARK);
                plain += SHIFT;
            }
            line.write(plain);
        }
        line.write('\n');
        socket.getOutputStream().write(line.toByteArray());
        return answer();
    }

    private List<byte[]> answer() throws IOException {
        List<byte[]> fields = new ArrayList<>();
        ByteArrayOutputStream field = new ByteArrayOutputStream(USUAL_FIELD_BYTES);
        boolean isNull = false;
        while (true) {
            takePlain(field);
            int next = read();
            if (next == '\t' || next == '\n') {
                fields.add(isNull ? null : field.toByteArray());
                field.reset();
                isNull = false;
                if (next == '\n') {
                    break;
                }
            } else if (next == MARK) {
                field.write(read() - SHIFT);
            } else if (next == NULL) {
                isNull = true;
            } else {
                field.write(next);
            }
        }
        String code = text(fields.get(0));
        if (!code.equals("0")) {
            throw new Refused(fields.size() > 2 ? text(fields.get(2)) : "code " + code);
        }
        return fields.subList(2, fields.size());
    }

    /** Takes the bytes that stand for themselves, together: most values have no others. */
    private void takePlain(ByteArrayOutputStream field) {
        int from = at;
        while (at < end && (come[at] & 0xff) >= FIRST_PLAIN) {
            at++;
        }
        field.write(come, from, at - from);
    }

    private int read() throws IOException {
        if (at == end) {
            at = 0;
            end = Math.max(0, in.read(come));
            if (end == 0) {
                throw new EOFException("it has closed the connection");
            }
        }
        return come[at++] & 0xff;
    }

    private static String text(byte[] field) {
        return new String(field, StandardCharsets.UTF_8);
    }

    @Override
    public void close() {
        try {
            socket.close();
        } catch (IOException lost) {
            // Nothing is wanted of it any more.
        }
    }
}

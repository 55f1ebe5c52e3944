// Takes IDs and tickets from firnd with the JDK alone (11 or later), over the Redis protocol or over HTTP.
//
//     java FirnIds.java 127.0.0.1:9012,127.0.0.1:9022,127.0.0.1:9032 10
//     java FirnIds.java http://127.0.0.1:9012,http://127.0.0.1:9022 10
//
// It stays with one server while that answers, and goes on to the next when it does not. Asking again is safe: a
// Snowflake ID that was lost on its way is simply never used, and a ticket is asked for with a key, to which every server
// gives the same number again, so that a gapless sequence has no hole.
//
// A Firn belongs to one thread at a time. IDs are longs; in JSON they are strings, because a double would round them.
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class FirnIds {
    static final int TIMEOUT_MS = 2000; // to connect, and for an answer
    static final int ROUNDS = 4; // over all addresses, PAUSE_MS apart
    static final int PAUSE_MS = 1000;

    /** An error that another server would answer, too: the request is wrong, or not allowed. */
    static class Refused extends RuntimeException {
        private static final long serialVersionUID = 1;

        Refused(String message) {
            super(message);
        }
    }

    /** One server: a number, or an IOException when another one should be asked. */
    interface Server extends AutoCloseable {
        long snowflake() throws IOException, InterruptedException;

        long ticket(String key) throws IOException, InterruptedException;

        @Override
        void close();
    }

    static class Resp implements Server {
        private final Socket socket = new Socket();
        private final InputStream in;

        Resp(String address) throws IOException {
            int colon = address.lastIndexOf(':');
            try {
                socket.connect(new InetSocketAddress(address.substring(0, colon),
                        Integer.parseInt(address.substring(colon + 1))), TIMEOUT_MS);
                socket.setSoTimeout(TIMEOUT_MS);
                socket.setTcpNoDelay(true);
                in = new BufferedInputStream(socket.getInputStream());
            } catch (IOException e) {
                close();
                throw e;
            }
        }

        private String line() throws IOException {
            StringBuilder text = new StringBuilder();
            for (int c; (c = in.read()) != '\r'; text.append((char) c))
                if (c < 0) throw new EOFException("the connection ended");
            in.read(); // \n
            return text.toString();
        }

        private long ask(String... words) throws IOException {
            StringBuilder request = new StringBuilder("*" + words.length + "\r\n");
            for (String w : words) request.append("$" + w.length() + "\r\n" + w + "\r\n");
            socket.getOutputStream().write(request.toString().getBytes(StandardCharsets.US_ASCII));
            String line = line();
            if (line.startsWith("-TRYAGAIN")) throw new IOException(line); // its store is away; nothing was handed out
            if (line.startsWith("-")) throw new Refused(line.substring(1));
            return Long.parseLong(line.startsWith("$") ? line() : line.substring(1));
        }

        @Override
        public long snowflake() throws IOException {
            return ask("FIRN.NEXT", "snowflake");
        }

        @Override
        public long ticket(String key) throws IOException {
            return ask("FIRN.NEXT", "ticket", "KEY", key);
        }

        @Override
        public void close() {
            try {
                socket.close();
            } catch (IOException e) {
                // what could not be sent is asked again elsewhere
            }
        }
    }

    static class Http implements Server {
        private static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(Duration.ofMillis(TIMEOUT_MS)).build();
        private static final Pattern ID = Pattern.compile("\"id\":\"(\\d+)\""), DETAIL = Pattern.compile("\"detail\":\"(.*?)\"[,}]");
        private final String url;

        Http(String url) {
            this.url = url;
        }

        private long ask(HttpRequest.Builder request) throws IOException, InterruptedException {
            HttpResponse<String> answer = CLIENT.send(request.timeout(Duration.ofMillis(TIMEOUT_MS)).build(),
                    HttpResponse.BodyHandlers.ofString());
            Matcher id = ID.matcher(answer.body()), detail = DETAIL.matcher(answer.body());
            if (answer.statusCode() == 200 && id.find()) return Long.parseLong(id.group(1));
            String why = answer.statusCode() + " " + (detail.find() ? detail.group(1) : answer.body());
            if (answer.statusCode() == 503 || answer.statusCode() == 429) throw new IOException(why);
            throw new Refused(why);
        }

        @Override
        public long snowflake() throws IOException, InterruptedException {
            return ask(HttpRequest.newBuilder(URI.create(url + "/v1/ids/snowflake")));
        }

        @Override
        public long ticket(String key) throws IOException, InterruptedException {
            return ask(HttpRequest.newBuilder(URI.create(url + "/v1/sequences/default/next"))
                    .header("Idempotency-Key", key).POST(HttpRequest.BodyPublishers.noBody()));
        }

        @Override
        public void close() {
        }
    }

    static class Firn implements AutoCloseable {
        private interface Question {
            long to(Server server) throws IOException, InterruptedException;
        }

        private final Deque<String> addresses;
        private Server server;

        Firn(List<String> addresses) {
            this.addresses = new ArrayDeque<>(addresses);
        }

        private long ask(Question question) throws IOException, InterruptedException {
            List<String> tried = new ArrayList<>();
            for (int attempt = 0; attempt < ROUNDS * addresses.size(); attempt++) {
                if (attempt > 0 && attempt % addresses.size() == 0) Thread.sleep(PAUSE_MS);
                String address = addresses.peekFirst();
                try {
                    if (server == null) server = address.contains("://") ? new Http(address) : new Resp(address);
                    return question.to(server);
                } catch (IOException e) {
                    tried.add(address + ": " + (e.getMessage() == null ? e : e.getMessage()));
                    close();
                    addresses.addLast(addresses.removeFirst());
                }
            }
            throw new IOException("no server answered: " + String.join("; ", tried));
        }

        long snowflake() throws IOException, InterruptedException {
            return ask(Server::snowflake);
        }

        long ticket() throws IOException, InterruptedException {
            String key = UUID.randomUUID().toString(); // the same for every attempt
            return ask(s -> s.ticket(key));
        }

        @Override
        public void close() {
            if (server != null) server.close();
            server = null;
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2) {
            System.err.println("usage: java FirnIds.java ADDRESS[,ADDRESS...] COUNT; an address is HOST:PORT or http://HOST:PORT");
            System.exit(2);
        }
        try (Firn firn = new Firn(List.of(args[0].split(",")))) {
            for (int i = Integer.parseInt(args[1]); i > 0; i--)
                System.out.println("Snowflake ID: " + firn.snowflake() + ", Ticket ID: " + firn.ticket());
        }
    }
}

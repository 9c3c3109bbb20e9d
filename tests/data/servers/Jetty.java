// The application on Jetty: files by its own servlet, the rest here.
import java.io.IOException;
import java.nio.file.Path;
import java.util.zip.CRC32;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.SecureRequestCustomizer;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.AbstractHandler;
import org.eclipse.jetty.server.handler.HandlerList;
import org.eclipse.jetty.server.handler.gzip.GzipHandler;
import org.eclipse.jetty.servlet.DefaultServlet;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;
import org.eclipse.jetty.util.ssl.SslContextFactory;

public class Jetty extends AbstractHandler {
    @Override
    public void handle(
            String path, Request base, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        base.setHandled(true);
        switch (path) {
            case "/empty" -> response.setStatus(204);
            case "/reject" -> response.setStatus(413);
            case "/chunked", "/trailers" -> {
                if (path.equals("/trailers")) {
                    HttpFields fields = new HttpFields();
                    fields.put("X-Check", "3");
                    base.getResponse().setTrailers(() -> fields);
                }
                for (int number = 1; number <= 3; number++) {
                    response.getOutputStream().print("chunk " + number + "\n");
                    response.flushBuffer();
                }
            }
            case "/close" -> {
                response.setHeader("Connection", "close");
                response.getOutputStream().print("bye");
            }
            case "/until-close" -> {
                response.setHeader("Connection", "close");
                response.getOutputStream().print("the end\n");
                response.flushBuffer();
            }
            case "/echo" -> {
                CRC32 sum = new CRC32();
                byte[] piece = new byte[65536];
                long length = 0;
                for (int read; (read = request.getInputStream().read(piece)) > 0; length += read) {
                    sum.update(piece, 0, read);
                }
                response.getOutputStream().print(length + " " + String.format("%08x", sum.getValue()));
            }
            default -> base.setHandled(false);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Server server = new Server();
        HttpConfiguration configuration = new HttpConfiguration();
        configuration.addCustomizer(new SecureRequestCustomizer(false));
        HttpConnectionFactory http = new HttpConnectionFactory(configuration);
        ServerConnector connector;
        String store = System.getenv("STORE");
        if (store == null) {
            connector = new ServerConnector(server, http);
        } else {
            SslContextFactory.Server tls = new SslContextFactory.Server();
            tls.setKeyStorePath(store);
            tls.setKeyStorePassword("secret");
            connector = new ServerConnector(server, tls, http);
        }
        connector.setHost(System.getenv("HOST"));
        connector.setPort(Integer.parseInt(System.getenv("PORT")));
        connector.setIdleTimeout(1000L * Integer.parseInt(System.getenv("IDLE")));
        server.addConnector(connector);

        ServletContextHandler files = new ServletContextHandler();
        ServletHolder servlet = new ServletHolder(DefaultServlet.class);
        servlet.setInitParameter("resourceBase", Path.of(System.getenv("ROOT")).toUri().toString());
        servlet.setInitParameter("etags", "true");
        files.addServlet(servlet, "/");
        GzipHandler gzip = new GzipHandler();
        gzip.setHandler(new HandlerList(new Jetty(), files));
        gzip.setIncludedPaths("/text.txt");
        server.setHandler(gzip);
        server.start();
    }
}

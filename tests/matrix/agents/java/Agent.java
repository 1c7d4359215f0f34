// java.net.http: a streamed tool loop by hand, then three at once. A JVM has no clock or chance that a tape knows, so it
// asks for none.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Agent {
    static final HttpClient CLIENT = HttpClient.newHttpClient();
    static final String USER = "{'role':'user','content':'The weather?'}";
    static final String TOOLS = "[{'type':'function','function':{'name':'get_weather','parameters':"
        + "{'type':'object','properties':{'city':{'type':'string'}}}}}]";

    static CompletableFuture<String> ask(String body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create("https://api.openai.com/v1/chat/completions"))
            .header("authorization", "Bearer " + System.getenv("OPENAI_API_KEY"))
            .header("content-type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body.replace('\'', '"'))).build();
        return CLIENT.sendAsync(request, HttpResponse.BodyHandlers.ofLines()).thenApply(answer -> {
            if (answer.statusCode() != 200) throw new IllegalStateException("status " + answer.statusCode());
            return answer.version() + String.join("\n", (Iterable<String>) answer.body()::iterator);
        });
    }

    static String streamed(String messages) {
        return "{'model':'gpt-5','stream':true,'messages':[" + messages + "]}";
    }

    public static void main(String[] args) {
        String first = ask("{'model':'gpt-5','tools':" + TOOLS + ",'messages':[" + USER + "]}").join();
        System.out.println(first);
        Matcher calls = Pattern.compile("\"tool_calls\":(\\[.*?\\}\\}\\])").matcher(first);
        if (!calls.find()) throw new IllegalStateException("no calls in " + first);
        StringBuilder results = new StringBuilder();
        Matcher ids = Pattern.compile("call_\\w+").matcher(first);
        while (ids.find()) results.append(",{'role':'tool','tool_call_id':'" + ids.group() + "','content':'rain'}");
        String said = ",{'role':'assistant','tool_calls':" + calls.group(1) + "}";
        System.out.println(ask(streamed(USER + said + results)).join());
        List<CompletableFuture<String>> asked = new ArrayList<>();
        for (String name : List.of("left", "right", "middle"))
            asked.add(ask(streamed("{'role':'user','content':'" + name + "'}")));
        for (CompletableFuture<String> one : asked) System.out.println(one.join());
    }
}

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.FileInputStream;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.connect.mirror.MirrorMakerConfig;
import org.apache.kafka.connect.mirror.SourceAndTarget;

/**
 * What MirrorMaker 2's own classes read from files. The argument is a JSON file: a list of [name, kind, path or
 * settings]; `mm2` is the path of an mm2.properties, `connector` the settings of one connector. Prints one JSON object.
 */
public class Understood {
    static final String PACKAGE = "org.apache.kafka.connect.mirror.";
    static final String[] CONNECTORS = {"MirrorSource", "MirrorCheckpoint", "MirrorHeartbeat"};

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        Map<String, Object> found = new TreeMap<>();
        for (List<?> one : mapper.readValue(new File(arguments[0]), List[].class)) {
            Object read = one.get(1).equals("mm2") ? ofFile((String) one.get(2)) : ofConnector((Map<?, ?>) one.get(2));
            found.put((String) one.get(0), read);
        }
        System.out.println(mapper.writeValueAsString(found));
    }

    static Object ofFile(String path) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream stream = new FileInputStream(path)) {
            properties.load(stream);
        }
        Map<String, String> texts = new HashMap<>();
        properties.forEach((key, value) -> texts.put((String) key, (String) value));
        texts.put("plugin.discovery", "service_load"); // a search by reflection for each file would take minutes
        MirrorMakerConfig config = new MirrorMakerConfig(texts);
        Method base = MirrorMakerConfig.class.getDeclaredMethod("connectorBaseConfig", SourceAndTarget.class, Class.class);
        base.setAccessible(true);
        Map<String, Object> flows = new LinkedHashMap<>();
        for (SourceAndTarget pair : config.clusterPairs()) {
            Map<String, Object> values = new TreeMap<>();
            for (String name : CONNECTORS) {
                Class<?> connector = Class.forName(PACKAGE + name + "Connector");
                @SuppressWarnings("unchecked")
                Map<String, String> settings = (Map<String, String>) base.invoke(config, pair, connector);
                // A pair is there for its heartbeats too: then the flow is not enabled.
                values.put("enabled", settings.getOrDefault("enabled", "false"));
                values.putAll(values(name, settings));
            }
            values.put("offset.storage.topic", config.workerConfig(pair).get("offset.storage.topic"));
            values.put("offset.storage.replication.factor", config.workerConfig(pair).get("offset.storage.replication.factor"));
            flows.put(pair.toString(), values);
        }
        return flows;
    }

    static Object ofConnector(Map<?, ?> settings) throws Exception {
        Map<String, String> texts = new HashMap<>();
        settings.forEach((key, value) -> {
            if (value != null)
                texts.put(key.toString(), value.toString());
        });
        texts.putIfAbsent("name", "connector");
        String kind = texts.get("connector.class").substring(PACKAGE.length()).replace("Connector", "");
        return Map.of(kind, values(kind, texts));
    }

    static Map<String, Object> values(String name, Map<String, String> settings) throws Exception {
        AbstractConfig config = (AbstractConfig)
            Class.forName(PACKAGE + name + "Config").getConstructor(Map.class).newInstance(settings);
        Map<String, Object> found = new TreeMap<>();
        config.values().forEach((key, value) -> found.put(key, value == null ? null : text(value)));
        // What the filters and the policy read of the settings themselves.
        for (String key : new String[] {"topics", "topics.exclude", "topics.blacklist", "groups", "groups.exclude",
            "groups.blacklist", "config.properties.exclude", "use.defaults.from", "replication.policy.separator"})
            if (settings.containsKey(key) && !found.containsKey(key))
                found.put(key, settings.get(key));
        for (String side : new String[] {"source", "target"}) {
            Map<String, Object> ends = config.originalsWithPrefix(side + ".cluster.");
            found.put(side + " servers", ends.get("bootstrap.servers"));
            found.put(side + " protocol", ends.get("security.protocol"));
        }
        return found;
    }

    static String text(Object value) {
        if (value instanceof List<?> list)
            return String.join(",", list.stream().map(Object::toString).toList());
        return value instanceof Class<?> type ? type.getName() : value.toString();
    }
}

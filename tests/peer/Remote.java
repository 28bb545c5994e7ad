import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** What Java's client library reads of a cluster: arguments are its bootstrap servers, an upstream alias and a group. */
public class Remote {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> properties = Map.of("bootstrap.servers", arguments[0]);
        String alias = arguments[1];
        System.out.println("hops " + RemoteClusterUtils.replicationHops(properties, alias));
        for (String one : new TreeSet<>(RemoteClusterUtils.upstreamClusters(properties)))
            System.out.println("upstream " + one);
        for (String one : new TreeSet<>(RemoteClusterUtils.heartbeatTopics(properties)))
            System.out.println("heartbeats " + one);
        for (String one : new TreeSet<>(RemoteClusterUtils.checkpointTopics(properties)))
            System.out.println("checkpoints " + one);
        Map<TopicPartition, OffsetAndMetadata> offsets =
            RemoteClusterUtils.translateOffsets(properties, alias, arguments[2], Duration.ofSeconds(30));
        Map<String, String> lines = new TreeMap<>();
        offsets.forEach((place, offset) -> lines.put(place.toString(), offset.offset() + " " + offset.metadata()));
        lines.forEach((place, offset) -> System.out.println("offset " + place + " " + offset));
    }
}

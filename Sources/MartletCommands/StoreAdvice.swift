internal import MartletCore
internal import MartletRedis

/// What works in Redis today and loses sessions, or limits, some day.
struct StoreAdvice {
    /// How many round trips are measured; the fastest counts.
    private static let measurements = 5
    private static let defaultUser = "default"

    /// Connected, with all required permissions.
    let client: RedisClient
    /// Whom the gateway logs in as; `nil` for the default user.
    let username: String?

    /// - Parameter sharedLimit: how long requests wait for shared limits; `nil` without any.
    func findings(sharedLimit: Duration?) async -> [OnlineFinding] {
        var findings: [OnlineFinding] = []
        if let policy = await client.evictionPolicy() { findings.append(warning(policy.warning)) }
        if let finding = await checkDefaultUser() { findings.append(finding) }
        if let sharedLimit, let finding = await checkRoundTrip(sharedLimit) { findings.append(finding) }
        return findings
    }

    private func warning(_ detail: String) -> OnlineFinding {
        OnlineFinding(subject: "store", failure: nil, detail: detail, isWarning: true)
    }

    /// Redis before 7.4 replays what scripts wrote with the rights of the default user: without them, a restart loses it.
    private func checkDefaultUser() async -> OnlineFinding? {
        guard let username, username != Self.defaultUser else { return nil }
        let advice =
            "the default user may be off, but has to keep ~* &* +@all: else Redis loses what scripts wrote when "
            + "it reads its append-only file"
        let question = ["ACL", "GETUSER", Self.defaultUser].map { Array($0.utf8) }
        let reply: RedisReply
        do throws(StoreError) {
            reply = try await client.command(question)
        } catch {
            // Without the right to ask, this is a note.
            return OnlineFinding(subject: "store", failure: nil, detail: "note: \(advice)")
        }
        guard case .array(let parts) = reply, Self.lacksRights(parts) else { return nil }
        return warning("\(advice): ACL SETUSER default ~* &* +@all")
    }

    /// - Parameter parts: names and values in turn.
    static func lacksRights(_ parts: [RedisReply]) -> Bool {
        func text(_ name: String) -> String? {
            guard let index = parts.firstIndex(of: .bytes(Array(name.utf8))), index + 1 < parts.count else {
                return nil
            }
            switch parts[index + 1] {
            case .bytes(let bytes): return String(decoding: bytes, as: UTF8.self)
            // Redis 6.2 lists patterns without their sign.
            case .array(let patterns):
                return patterns.map { part in
                    if case .bytes(let bytes) = part { String(decoding: bytes, as: UTF8.self) } else { "" }
                }.joined(separator: " ")
            default: return nil
            }
        }
        let commands = text("commands").map { $0.split(separator: " ").contains("+@all") } ?? true
        let keys = text("keys").map { $0 == "*" || $0.split(separator: " ").contains("~*") } ?? true
        return !commands || !keys
    }

    private func checkRoundTrip(_ limit: Duration) async -> OnlineFinding? {
        var fastest: Duration?
        for _ in 0..<Self.measurements {
            guard (try? await client.command(["PING"].map { Array($0.utf8) })) != nil,
                let latency = client.status.lastLatency
            else { return nil }
            fastest = min(fastest ?? latency, latency)
        }
        guard let fastest, fastest > limit else { return nil }
        return warning(
            "a round trip takes \(fastest.wholeMilliseconds) ms, longer than store.timeouts.shared_limit "
                + "(\(limit.wholeMilliseconds)ms): shared limits count for each instance")
    }
}

internal import MartletCore
internal import MartletEvents
internal import MartletJSON

/// Records events in the transaction of the change that they are about, for the webhooks that get them.
final class EventRecorder: Sendable {
    /// The id and the time of an event; made before the transaction, whose steps may run several times.
    struct Stamp: Sendable {
        let id: String
        /// Milliseconds since 1970.
        let time: Int64

        /// - Throws: `accounts.failed` if no random bytes are available.
        init(at milliseconds: Int64) throws(AccountError) {
            do throws(StoreError) { id = try ULID(at: milliseconds).description } catch {
                throw .unavailable(.accountsFailed, error.message)
            }
            time = milliseconds
        }
    }

    let observers = OutboxObservers()
    private let subscriptions = Lock(EventSubscriptions())

    func subscribe(_ new: EventSubscriptions) { subscriptions.withLock { $0 = new } }

    /// Whether a webhook gets events of a type.
    func isSubscribed(to type: EventType) -> Bool { !subscriptions.withLock { $0 }.hooks(for: type).isEmpty }

    /// The queries that record an event; none if no webhook gets it.
    func queries(_ type: EventType, of subject: String, _ stamp: Stamp, data: JSONObject) -> [Query] {
        let hooks = subscriptions.withLock { $0 }.hooks(for: type)
        guard !hooks.isEmpty else { return [] }
        let text = StoredClaims.write(data)
        let event = Query(
            OutboxStatement.addEvent, .text(stamp.id), .text(type.rawValue), .text(subject), .integer(stamp.time),
            .text(text))
        return [event]
            + hooks.map {
                Query(OutboxStatement.addDelivery, .text($0), .text(stamp.id), .text(subject), .integer(stamp.time))
            }
    }
}

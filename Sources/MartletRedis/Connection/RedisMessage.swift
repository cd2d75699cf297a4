/// A pushed message of a subscription: `message`, the channel, the payload.
struct RedisMessage {
    let channel: [UInt8]
    let payload: [UInt8]

    /// `nil` for any other reply.
    init?(_ reply: RedisReply) {
        guard case .array(let parts) = reply, parts.count == 3, case .bytes(let word) = parts[0],
            word.elementsEqual("message".utf8), case .bytes(let channel) = parts[1],
            case .bytes(let payload) = parts[2]
        else { return nil }
        self.channel = channel
        self.payload = payload
    }
}

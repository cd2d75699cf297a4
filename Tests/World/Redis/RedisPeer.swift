/// One connection of a client: bytes in, bytes out.
package final class RedisPeer {
    /// What is to be sent to the client; whoever sends it removes it.
    package var output: [UInt8] = []
    /// Whether the server has closed the connection, behind the last byte of ``output``.
    package private(set) var isClosed = false
    /// Called when there is output, or the connection was closed, that no bytes of this client have caused.
    package var onChange: (() -> Void)?

    /// Without one the connection has ended.
    private(set) weak var model: RedisModel?
    private var parser = CommandParser()
    private var isReceiving = false
    var isAuthenticated = false
    /// Whether the client accepts what a replica of a cluster has.
    var isReadOnly = false
    /// Whether the next command was redirected here for this once.
    var isAsking = false
    var channels: [RedisKey] = []
    /// The offset of the last write.
    var lastWrite: Int64 = 0
    /// The `WAIT` that the client is blocked by.
    var wait: PendingWait?

    init(of model: RedisModel) { self.model = model }

    /// Bytes of the client: commands, several or a part of one.
    package func receive(_ bytes: [UInt8]) {
        guard !isClosed else { return }
        parser.append(bytes)
        isReceiving = true
        execute()
        isReceiving = false
    }

    /// The client has closed the connection.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        model?.remove(self)
    }

    /// Writes a reply or a message.
    func send(_ reply: Reply) {
        guard !isClosed else { return }
        output.append(reply)
        if !isReceiving { onChange?() }
    }

    /// Ends the connection.
    func end(with error: CommandError?) {
        guard !isClosed else { return }
        if let error { output.append(.error(error)) }
        close()
        if !isReceiving { onChange?() }
    }

    /// The reply to `WAIT`, after which further commands are executed.
    func resume(_ reply: Reply) {
        wait = nil
        output.append(reply)
        execute()
        if !isReceiving { onChange?() }
    }

    private func execute() {
        do throws(CommandError) {
            while wait == nil, !isClosed, let model, let arguments = try parser.next() {
                if let reply = model.execute(arguments, of: self) { output.append(reply) }
            }
        } catch {
            model?.noteUnknown(error.text)
            end(with: error)
        }
    }
}

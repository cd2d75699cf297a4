internal import MartletCore
internal import MartletEvents
internal import MartletJSON
internal import MartletProvider

/// The requests for one-time links, as transaction steps that both engines run.
struct LinkRules: Sendable {
    let dialect: Dialect
    let recorder: EventRecorder

    /// The steps of a request, the same for every address.
    ///
    /// A link for an address without a user is stored as well; its token is in no mail, and a link of a reset without
    /// a hash replaces none.
    func request(
        _ request: PasswordLinkRequest, at now: UnixTime, _ stamp: EventRecorder.Stamp
    ) -> TransactionStep<PasswordLinkReceipt> {
        let start = now.advanced(bySeconds: -PasswordLinkLimits.window.wholeSeconds)
        let (address, origin) = (Query.Value.text(request.address), request.origin)
        let lock = dialect == .postgresql ? [Query(.lock, .text("link\n\(request.address)"))] : []
        let queries = [
            Query(.findUser, address), Query(LinkStatement.purge, .integer(start.seconds)),
            Query(
                LinkStatement.recent, address, .integer(start.seconds), .text(origin.network),
                .text(origin.neighborhood ?? origin.network), .integer(Int64(PasswordLinkLimits.mailsOfNeighborhood))),
        ]
        return .run(lock + queries) { results throws(AccountError) in
            guard try Self.allows(request, after: results[lock.count + 2], at: now) else { return .end(.withheld) }
            let user = try results[lock.count].first.map(AccountStore.record)
            return .commit(changes(request, of: user, at: now, stamp)) { _ in .accepted }
        }
    }

    /// Whether a mail may be sent after those that the same network and its neighbors have caused.
    private static func allows(
        _ request: PasswordLinkRequest, after recent: [Row], at now: UnixTime
    ) throws(AccountError) -> Bool {
        guard recent.count < PasswordLinkLimits.mailsOfNeighborhood else { return false }
        let pause = now.advanced(bySeconds: -PasswordLinkLimits.pause.wholeSeconds)
        var own = 0
        for row in recent where try row.integer(2) == 1 {
            own += 1
            if try row.integer(1) == request.purpose.rawValue, try row.integer(0) > pause.seconds { return false }
        }
        return own < PasswordLinkLimits.mails
    }

    /// - Parameter user: the one with the address, also a disabled one.
    private func changes(
        _ request: PasswordLinkRequest, of user: UserRecord?, at now: UnixTime, _ stamp: EventRecorder.Stamp
    ) -> [Query] {
        let isReset = request.purpose == .reset
        let expiry = now.advanced(bySeconds: PasswordLinkLimits.lifetime.wholeSeconds)
        // A disabled user gets no link: looks like no user.
        let active = user.flatMap { $0.isDisabled ? nil : $0 }
        let mail = active?.provedAt == nil ? request.mails.unproved ?? request.mails.user : request.mails.user
        let data = (isReset ? active : user) == nil ? request.mails.other : mail
        let link = Query(
            LinkStatement.add, .text(request.digest), .integer(request.purpose.rawValue), .text(request.provider),
            .text(request.address), .text(isReset ? active?.hash ?? "" : ""),
            .text(isReset ? "" : StoredClaims.write(request.claims)), .integer(now.seconds), .integer(expiry.seconds),
            .text(request.origin.network), .text(request.origin.neighborhood ?? request.origin.network))
        let event = recorder.queries(.mailRequested, of: request.address, stamp, data: data ?? request.mails.user)
        return [link, Query(LinkStatement.trim, .integer(Int64(PasswordLinkLimits.stored)))] + event
            + [Query(LinkStatement.dropEvent, .text(stamp.id), .integer(data == nil ? 1 : 0))]
    }
}

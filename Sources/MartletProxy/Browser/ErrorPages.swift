internal import MartletAuthenticator
internal import MartletBrowser
internal import MartletCore
internal import MartletHTTP
package import MartletResponder

/// The pages for errors of navigations.
package struct ErrorPages: Sendable {
    /// The index of the language of a page, by `Accept-Language`.
    let language: @Sendable (_ acceptLanguage: String?) -> UInt8
    /// The page for a failure; `nil` for one that stays a document.
    let page: @Sendable (_ failure: Failure, _ language: UInt8, _ requestID: String) -> ErrorPage?
    /// The page for a user who is signed in and may not see what they asked for.
    let denial: @Sendable (_ failure: Failure, _ request: LocalRequest) async -> LocalResponse

    package init(
        language: @escaping @Sendable (String?) -> UInt8,
        page: @escaping @Sendable (Failure, UInt8, String) -> ErrorPage?,
        denial: @escaping @Sendable (Failure, LocalRequest) async -> LocalResponse
    ) {
        self.language = language
        self.page = page
        self.denial = denial
    }
}

/// Whether a person sees the response, and in which language.
struct NavigationMark {
    /// The index of the language and one; 0 for a request that is no navigation.
    private var value: UInt8 = 0

    /// `nil` for a request that is no navigation.
    var language: UInt8? { value == 0 ? nil : value &- 1 }

    static func of(language: UInt8) -> NavigationMark {
        var mark = NavigationMark()
        mark.value = language &+ 1
        return mark
    }
}

extension RequestRouter {
    /// Marks a navigation, before anything can be wrong with it: the head is not kept.
    @inline(never)
    mutating func markNavigation(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) {
        guard unsafe NavigationRule.isNavigation(bytes.span, head.fields, method: head.method),
            let pages = loop.context.snapshot.browser?.errors
        else { return }
        var languages: String?
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            guard unsafe field.isNamed("accept-language", in: bytes.span) else { continue }
            languages = unsafe String(decoding: bytes[field.value], as: UTF8.self)
            break
        }
        loop.exchanges[exchange].request.navigation = .of(language: pages.language(languages))
    }
}

extension RequestRouter {
    /// Responds to a user who is signed in and may not see what they asked for with a page that says who they are, and
    /// how to leave.
    mutating func deny(
        _ exchange: Handle<Exchange>, _ rejection: Rejection, _ bytes: UnsafeBufferPointer<UInt8>, _ pages: ErrorPages,
        _ loop: inout LoopState
    ) {
        let failure = rejection.failure
        unsafe noteHead(exchange, bytes, &loop)
        unsafe loop.exchanges[exchange].record.texts.add(names: rejection.names)
        loop.exchanges[exchange].record.reason = loop.context.counters.reason(failure)
        loop.exchanges[exchange].forwarding.head.removeAll()
        unsafe loop.exchanges[exchange].forwarding.head.append(bytes)
        RequestForwarder.beginLocal(exchange, { await pages.denial(failure, $0) }, &loop)
    }
}

extension ErrorPages {
    /// The page for a failure of a navigation; `nil` for any other request.
    static func page(of exchange: Handle<Exchange>, _ failure: Failure, in loop: borrowing LoopState) -> ErrorPage? {
        guard let language = loop.exchanges[exchange].request.navigation.language,
            let pages = loop.context.snapshot.browser?.errors
        else { return nil }
        return pages.page(
            failure, language, unsafe String(decoding: loop.exchanges[exchange].record.texts.requestID, as: UTF8.self))
    }
}

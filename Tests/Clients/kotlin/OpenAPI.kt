package com.tencent.mm.opensdk.openapi

import com.tencent.mm.opensdk.modelbase.BaseReq
import com.tencent.mm.opensdk.modelbase.BaseResp

interface IWXAPI {
    fun sendReq(request: BaseReq): Boolean
}

interface IWXAPIEventHandler {
    fun onResp(response: BaseResp)
}
